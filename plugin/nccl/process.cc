// SPDX-License-Identifier: Apache-2.0
// The only file with state of the process. It is made with the first share and goes with the last.
#include "nccl/process.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

namespace crosstie::nccl {

struct Known {
  size_t shares = 0;
  std::optional<std::string> name;
  bool disputed = false;  // two ranks were told different names
  std::atomic<TrafficClass> traffic{TrafficClass::unknown};
};

namespace {

// By NCCL's number; addresses stay while others come and go.
using Communicators = std::map<uint64_t, Known>;

constinit std::mutex guard;
constinit Communicators* communicators = nullptr;  // null while there are no shares

Known* join(uint64_t id) {
  const std::lock_guard lock(guard);
  if (communicators == nullptr) communicators = new Communicators;
  Known& known = (*communicators)[id];
  known.shares++;
  return &known;
}

void leave(uint64_t id) {
  const std::lock_guard lock(guard);
  const auto found = communicators->find(id);
  if (--found->second.shares == 0) communicators->erase(found);
  if (!communicators->empty()) return;
  delete communicators;
  communicators = nullptr;
}

}  // namespace

Share::Share(std::optional<uint64_t> communicator)
    : id_(communicator), known_(communicator ? join(*communicator) : nullptr) {}

Share::~Share() {
  if (id_) leave(*id_);
}

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

size_t communicators_known() {
  const std::lock_guard lock(guard);
  return communicators ? communicators->size() : 0;
}

}  // namespace crosstie::nccl
