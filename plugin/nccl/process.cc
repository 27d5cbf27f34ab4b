// SPDX-License-Identifier: Apache-2.0
// The only file with state of the process.
#include "nccl/process.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "base/digest.h"
#include "base/handle.h"
#include "base/printable.h"
#include "nccl/options.h"

namespace crosstie::nccl {

struct Known {
  size_t shares = 0;
  std::optional<std::string> name;
  bool disputed = false;          // two ranks were told different names
  std::optional<uint64_t> facts;  // the first tuner's digest
  std::atomic<TrafficClass> traffic{TrafficClass::unknown};
};

namespace {

// Made with the first share, and then for good: were a file read again once all communicators are
// gone, this process could decide from other facts than one that kept a communicator.
struct Process {
  std::map<uint64_t, Known> communicators;  // by NCCL's number; addresses stay while others come
  ClassRules class_rules;
  std::optional<Profile> profile;  // none: named, but not to be had
  std::map<uint64_t, std::shared_ptr<const NcclDecision>> decisions;  // by their facts' digest
};

constinit std::mutex guard;
constinit Process* process = nullptr;

// More than a file of rules or a profile may have, to be told so.
constexpr size_t kMostRead = 128 << 10;
// Of a path in a line of NCCL's log, which is cut at some length.
constexpr size_t kMostShown = 200;

// Of a pipe nobody may ever write to, and a job waits for no one.
Result<std::string> read_file(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const std::string shown = printable(path).substr(0, kMostShown);
  if (!file) return fail_errno(Code::missing, shown);
  struct stat found {};
  if (fstat(file.get(), &found) != 0) return fail_errno(Code::io, shown);
  if (!S_ISREG(found.st_mode)) return fail(Code::invalid, "{} is no regular file", shown);
  std::string text(kMostRead, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = read(file.get(), text.data() + size, text.size() - size);
    if (got < 0) return fail_errno(Code::io, shown);
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  text.resize(size);
  return text;
}

Result<ClassRules> rules_of_file(const ClassRules& built_in, const std::string& path) {
  const auto text = read_file(path);
  if (!text) return pass(text);
  return built_in.with(*text, path);
}

// Built-in rules stand where the user's cannot be had. Ranks that have them may decide otherwise:
// nothing that one rank does helps, so it is said.
ClassRules rules_of(const Environment& environment, const Logger& log) {
  const ClassRules built_in = ClassRules::built_in();
  const auto options = read_options<ClassOptions>(kClassOptions, environment);
  if (!options || options->rules.empty()) return built_in;
  const auto rules = rules_of_file(built_in, options->rules);
  if (rules) return *rules;
  log.warn("{}: {}; the built-in rules stand on this rank, and must on all", kClassOptions[0].name,
           rules.error().text);
  return built_in;
}

Result<Profile> profile_named(const std::string& name) {
  auto built_in = read_profile(known_profiles()[0].toml);
  if (name.empty() || !built_in) return built_in;
  const auto facts = facts_of_known(name);
  if (facts) {
    built_in->name = name, built_in->system = *facts;
    return built_in;
  }
  const auto text = read_file(name);
  if (!text && text.error().code == Code::missing)
    return fail(Code::missing, "{}, and {}", text.error().text, facts.error().text);
  if (!text) return pass(text);
  auto profile = read_profile(*text);
  if (!profile) return pass(profile, printable(name).substr(0, kMostShown));
  return profile;
}

// Nothing takes its place. Where other ranks have it, no answer of this one is safe: so it is said.
std::optional<Profile> profile_of(const Environment& environment, const Logger& log) {
  const auto options = read_options<ProfileOptions>(kProfileOptions, environment);
  const auto profile = profile_named(options ? options->profile : std::string());
  if (profile) return *profile;
  log.warn("{}: {}; NCCL's own choices stand on this rank, and must on all",
           kProfileOptions[0].name, profile.error().text);
  return std::nullopt;
}

Known* join(std::optional<uint64_t> id, const Environment& environment, const Logger& log) {
  const std::lock_guard lock(guard);
  if (process == nullptr) {
    auto fresh = std::make_unique<Process>();
    fresh->class_rules = rules_of(environment, log);
    fresh->profile = profile_of(environment, log);
    process = fresh.release();
  }
  if (!id) return nullptr;
  Known& known = process->communicators[*id];
  known.shares++;
  return &known;
}

void leave(std::optional<uint64_t> id) {
  if (!id) return;
  const std::lock_guard lock(guard);
  const auto found = process->communicators.find(*id);
  if (--found->second.shares == 0) process->communicators.erase(found);
}

}  // namespace

Share::Share(std::optional<uint64_t> communicator, const Environment& environment,
             const Logger& log)
    : id_(communicator), known_(join(communicator, environment, log)) {}

Share::~Share() { leave(id_); }

void Share::tell_name(std::string_view name) {
  if (known_ == nullptr) return;
  const std::lock_guard lock(guard);
  known_->disputed |= known_->name && *known_->name != name;
  known_->name = name;
}

std::string Share::name() const {
  if (known_ == nullptr) return {};
  const std::lock_guard lock(guard);
  return known_->disputed ? std::string() : known_->name.value_or("");
}

void Share::tell_class(TrafficClass traffic) {
  if (known_ != nullptr) known_->traffic.store(traffic, std::memory_order_relaxed);
}

TrafficClass Share::traffic_class() const {
  return known_ ? known_->traffic.load(std::memory_order_relaxed) : TrafficClass::unknown;
}

bool Share::agrees_on(uint64_t facts) {
  if (known_ == nullptr) return true;
  const std::lock_guard lock(guard);
  if (!known_->facts) known_->facts = facts;
  return *known_->facts == facts;
}

// Made with the first share, never changed: no lock.
const ClassRules& Share::class_rules() const { return process->class_rules; }

std::shared_ptr<const NcclDecision> Share::decision(const NcclCommunicator& communicator,
                                                    const CommunicatorClass& of) {
  const std::lock_guard lock(guard);
  if (!process->profile) return nullptr;
  auto& known = process->decisions[Digest().add(communicator.digest()).add(of.digest()).value()];
  if (!known) known = std::make_shared<const NcclDecision>(communicator, of, *process->profile);
  return known;
}

size_t communicators_known() {
  const std::lock_guard lock(guard);
  return process ? process->communicators.size() : 0;
}

}  // namespace crosstie::nccl
