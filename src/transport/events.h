// SPDX-License-Identifier: Apache-2.0
// What a Worker keeps for its owner: events until the next poll, and whether one that was
// refused should try again.
#pragma once
#include <algorithm>
#include <iterator>
#include <utility>

#include "transport/endpoint.h"

namespace crosstie {

class Events {
 public:
  void connected(EndpointId endpoint) { add(Event::Kind::connected, endpoint); }
  void accepted(EndpointId endpoint, std::span<const std::byte> hello) {
    add(Event::Kind::accepted, endpoint).bytes.assign(hello.begin(), hello.end());
  }
  void put_done(EndpointId endpoint, uint64_t context) {
    add(Event::Kind::put_done, endpoint).context = context;
  }
  void notified(EndpointId endpoint, uint32_t immediate) {
    add(Event::Kind::notified, endpoint).immediate = immediate;
  }
  void message(EndpointId endpoint, std::span<const std::byte> bytes) {
    add(Event::Kind::message, endpoint).bytes.assign(bytes.begin(), bytes.end());
  }
  void failed(EndpointId endpoint, std::string why, bool died = false) {
    Event& event = add(Event::Kind::failed, endpoint);
    event.why = std::move(why);
    event.died = died;
  }

  bool empty() const { return events_.empty(); }
  void forget(EndpointId endpoint) {
    std::erase_if(events_, [endpoint](const Event& event) { return event.endpoint == endpoint; });
  }
  // Appends all to `out`.
  void hand_over(std::vector<Event>& out) {
    if (out.empty()) {
      out.swap(events_);
      return;
    }
    std::move(events_.begin(), events_.end(), std::back_inserter(out));
    events_.clear();
  }

 private:
  Event& add(Event::Kind kind, EndpointId endpoint) {
    Event& event = events_.emplace_back();
    event.kind = kind;
    event.endpoint = endpoint;
    return event;
  }
  std::vector<Event> events_;
};

// Whether a caller that was refused should try again before it sleeps: what it needed may have
// come in the poll between its call and arm().
class Retry {
 public:
  Posted refuse() {
    refused_ = true;
    return Posted::again;
  }
  void worthwhile() { worthwhile_ = true; }
  // True once for what has changed, so that a caller that has lost interest can sleep.
  bool due() {
    const bool both = refused_ && worthwhile_;
    if (both) refused_ = worthwhile_ = false;
    return both;
  }

 private:
  bool refused_ = false;
  bool worthwhile_ = false;
};

}  // namespace crosstie
