// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/numbers.h"
#include "base/printable.h"
#include "base/text.h"
#include "cost/nccl_tests.h"

namespace crosstie {
namespace {

using Json = nlohmann::json;

class JsonReader {
 public:
  JsonReader(const std::string& file, const ToldOfLog& told) : told_(told) { run_.file = file; }

  Result<MeasuredRun> read(const Json& root) {
    run_.line = 1, run_.counted = "result";
    status_ = tell(run_, told_);
    read_environment(member(root, "env"));
    read_arguments(member(root, "args"));
    read_configuration(member(root, "config"));
    if (const auto code = whole(root, "nccl_version")) run_.version = nccl_version_of_code(*code);
    const Json& results = member(root, "results");
    if (!results.is_array()) mistake("'results' is needed, a list");
    for (size_t i = 0; i < results.size() && status_; i++) read_result(results[i], i + 1);
    bad_results_.tell(run_);
    const Json& wrong = member(root, "out_of_bounds");
    run_.out_of_bounds = whole(wrong, "count").value_or(wrong.is_null() ? 0 : 1);
    run_.ended = root.contains("average_bus_bandwidth");
    if (run_.program.empty()) run_.program = program_told(told_);
    run_.collective = collective_of_program(run_.program);
    if (!status_) return pass(status_);
    return std::move(run_);
  }

 private:
  void mistake(std::string_view what) {
    if (status_) status_ = fail(Code::invalid, "{}", what);
  }

  // Null where it is not there, or `of` no object.
  const Json& member(const Json& of, const char* key) const {
    return of.is_object() && of.contains(key) ? of[key] : none_;
  }
  std::optional<uint64_t> whole(const Json& of, const char* key) const {
    const Json& value = member(of, key);
    return value.is_number_unsigned() ? std::optional(value.get<uint64_t>()) : std::nullopt;
  }
  std::string text(const Json& of, const char* key) const {
    const Json& value = member(of, key);
    return value.is_string() ? value.get<std::string>() : "";
  }

  void read_environment(const Json& list) {
    for (const Json& entry : list) {
      if (!entry.is_string()) continue;
      const std::string variable = entry.get<std::string>();
      const size_t equals = std::min(variable.find('='), variable.size());
      const std::string name = variable.substr(0, equals);
      if (equals == variable.size() || !status_) continue;
      const std::string value = variable.substr(equals + 1);
      if (name == "NCCL_TUNER_PLUGIN" && value != "none") run_.tuner = value;
      if (NcclLimits::heeds(name)) status_ = run_.limits.set(name, value);
    }
  }

  void read_arguments(const Json& list) {
    std::vector<std::string> words;
    for (const Json& word : list)
      if (word.is_string()) words.push_back(word.get<std::string>());
    heed_command(run_, words);
  }

  void read_configuration(const Json& config) {
    constexpr uint64_t kMost = 1 << 16;
    const auto threads = whole(config, "nthreads"), gpus = whole(config, "ngpus");
    if (!threads || !gpus || *threads >= kMost || *gpus >= kMost)
      return mistake("'config' needs 'nthreads' and 'ngpus'");
    heed_option(run_, 'm',
                static_cast<int64_t>(whole(config, "aggregated_iterations").value_or(1)));
    heed_option(run_, 'G', static_cast<int64_t>(whole(config, "graph").value_or(0)));
    const Json& blocking = member(config, "blocking_collectives");
    heed_option(run_, 'z', blocking == true || blocking == "true");
    run_.gpus_per_process = static_cast<uint32_t>(*threads * *gpus);
    read_devices(member(config, "devices"));
  }

  // Of each process the first of its devices.
  void read_devices(const Json& list) {
    NcclTestsDevices devices;
    for (const Json& device : list) {
      const std::string id =
          fmt::format("{} [{}]", whole(device, "device").value_or(0), text(device, "device_hex"));
      devices.add(static_cast<uint32_t>(whole(device, "rank").value_or(0)),
                  static_cast<uint32_t>(whole(device, "group").value_or(0)),
                  text(device, "hostname"), device.contains("device") ? id : "");
    }
    devices.describe(run_.gpus_per_process, run_);
  }

  void read_result(const Json& result, size_t number) {
    const auto bytes = whole(result, "size");
    if (!bytes) return bad_results_.see(fmt::format("result {}", number), "'size' is needed");
    if (*bytes == 0) return;  // AllGather of fewer bytes than ranks
    for (const bool in_place : {false, true}) {
      const Json& half = member(result, in_place ? "in_place" : "out_of_place");
      if (half.is_null()) continue;
      read_half(half, {.bytes = *bytes,
                       .in_place = in_place,
                       .type = text(result, "type"),
                       .operation = text(result, "redop"),
                       .line = number});
    }
  }

  void read_half(const Json& half, Outcome of) {
    const bool cpu_time = half.contains("cpu_time");
    heed_option(run_, 'C', cpu_time);
    const auto time = number(member(half, cpu_time ? "cpu_time" : "time"));
    const Json& wrong = member(half, "nwrong");
    const auto elements = wrong.is_null() ? 0 : number(wrong);
    of.time = microseconds(time.value_or(0)), of.wrong = elements.value_or(0);
    if (of.time <= Seconds(0) || !elements)
      return bad_results_.see(fmt::format("result {}", of.line),
                              "'time' must be a number above 0, and 'nwrong' one");
    run_.outcomes.push_back(of);
  }

  // Also as text.
  static std::optional<double> number(const Json& value) {
    const auto number = value.is_string()   ? number_of<double>(trim(value.get<std::string>()))
                        : value.is_number() ? std::optional(value.get<double>())
                                            : std::nullopt;
    return number && std::isfinite(*number) && *number >= 0 ? number : std::nullopt;
  }

  const ToldOfLog& told_;
  const Json none_;
  MeasuredRun run_;
  Unreadable bad_results_{"result"};
  Status status_;
};

}  // namespace

Result<std::vector<MeasuredRun>> read_nccl_tests_json(std::string_view text,
                                                      const std::string& file,
                                                      const ToldOfLog& told) {
  try {
    auto run = JsonReader(file, told).read(Json::parse(text));
    if (!run) return pass(run);
    return std::vector{std::move(*run)};
  } catch (const Json::exception& error) {
    return fail(Code::invalid, "cannot be read as JSON, or its program ended too early: {}",
                printable(error.what()));
  }
}

}  // namespace crosstie
