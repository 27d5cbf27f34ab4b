// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/printable.h"
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
    run_.out_of_bounds = whole(member(root, "out_of_bounds"), "count").value_or(0);
    run_.ended = root.contains("average_bus_bandwidth");
    if (!run_.collective) run_.collective = collective_of_program(run_.program);
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
      if (!NcclLimits::heeds(name) || equals == variable.size() || !status_) continue;
      status_ = run_.limits.set(name, variable.substr(equals + 1));
    }
  }

  // The program, and -R 2, --local_register 2: symmetric memory.
  void read_arguments(const Json& list) {
    if (!list.is_array() || list.empty() || !list[0].is_string()) return;
    run_.program = list[0].get<std::string>();
    for (size_t i = 1; i + 1 < list.size(); i++)
      if (list[i] == "-R" || list[i] == "--local_register") run_.symmetric |= list[i + 1] == "2";
  }

  void read_configuration(const Json& config) {
    constexpr uint64_t kMost = 1 << 16;
    const auto threads = whole(config, "nthreads"), gpus = whole(config, "ngpus");
    if (!threads || !gpus || *threads >= kMost || *gpus >= kMost)
      return mistake("'config' needs 'nthreads' and 'ngpus'");
    run_.batched = whole(config, "aggregated_iterations").value_or(1) > 1 ||
                   whole(config, "graph").value_or(0) > 0;
    NcclTestsDevices devices;
    for (const Json& device : member(config, "devices"))
      devices.add(text(device, "hostname"), whole(device, "pid").value_or(0),
                  static_cast<uint32_t>(whole(device, "group").value_or(0)));
    devices.describe(static_cast<uint32_t>(*threads * *gpus), run_);
  }

  void read_result(const Json& result, size_t number) {
    const auto bytes = whole(result, "size");
    if (!bytes) return mistake(fmt::format("result {}: 'size' is needed", number));
    if (*bytes == 0) return;  // AllGather of fewer bytes than ranks
    for (const bool in_place : {false, true}) {
      const Json& half = member(result, in_place ? "in_place" : "out_of_place");
      if (half.is_null()) continue;
      run_.cpu_time |= half.contains("cpu_time");
      const Json& time = member(half, half.contains("cpu_time") ? "cpu_time" : "time");
      const Json& wrong = member(half, "nwrong");
      if (!time.is_number() || !std::isfinite(time.get<double>()) || time.get<double>() < 0)
        return mistake(fmt::format("result {}: 'time' must be a number", number));
      if (time.get<double>() == 0) continue;
      run_.outcomes.push_back({.bytes = *bytes,
                               .time = microseconds(time.get<double>()),
                               .in_place = in_place,
                               .wrong = wrong.is_number() ? wrong.get<double>() : 0,
                               .line = number});
    }
  }

  const ToldOfLog& told_;
  const Json none_;
  MeasuredRun run_;
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
