// SPDX-License-Identifier: Apache-2.0
// How events are made and kept until the next poll.
#pragma once
#include <algorithm>
#include <iterator>

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
  void failed(EndpointId endpoint, std::string why) {
    add(Event::Kind::failed, endpoint).why = std::move(why);
  }

  bool empty() const { return events_.empty(); }
  size_t size() const { return events_.size(); }
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

}  // namespace crosstie
