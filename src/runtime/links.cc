// SPDX-License-Identifier: Apache-2.0
#include "runtime/links.h"

#include <algorithm>
#include <cstring>

namespace crosstie {
namespace {

// First byte of a message, then a number, then more.
enum Type : uint8_t {
  kGreeting = 1,   // operations completed; the key
  kCompleted = 2,  // operations completed
  kDeclared = 3,   // an operation; what it is taken to be
};
constexpr size_t kFixed = 1 + sizeof(uint64_t);
static_assert(kFixed + Links::kMostDeclared <= kMaxMessage && kFixed + kMaxBlob <= kMaxMessage);

Blob encode(Type type, uint64_t number, std::span<const std::byte> more) {
  Blob bytes(kFixed + more.size());
  bytes[0] = static_cast<std::byte>(type);
  memcpy(bytes.data() + 1, &number, sizeof number);
  std::copy(more.begin(), more.end(), bytes.begin() + kFixed);
  return bytes;
}

constexpr size_t kInside = 0, kAcross = 1;

}  // namespace

Result<Links> Links::make(int ranks, Carrier inside, Carrier across, Buffer scratch) {
  Links links;
  links.ranks_ = ranks;
  links.scratch_ = std::move(scratch);
  Carrier carriers[] = {std::move(inside), std::move(across)};
  for (size_t i = 0; i < links.wings_.size(); i++) {
    if (!carriers[i].worker) continue;
    auto region = carriers[i].worker->register_memory(links.scratch_.view(), Access::remote);
    if (!region) return pass(region);
    links.wings_[i] = std::make_unique<Wing>(Wing{std::move(carriers[i]), *region, {}, {}, {}});
  }
  return links;
}

Status Links::open(const Team& team, const std::vector<int>& peers) {
  for (const int peer : peers) {
    if (outgoing_.contains(peer)) continue;
    const bool inside = team.is_inside(peer);
    Wing* wing = wings_[inside ? kInside : kAcross].get();
    const Blob& address = inside ? team.facts(peer).inside : team.facts(peer).across;
    const int own = team.rank();
    const auto endpoint = wing->worker->connect(wing->device, address,
                                                std::as_bytes(std::span(&own, 1)), wing->service);
    if (!endpoint && endpoint.error().code == Code::exhausted)
      return pass(endpoint, fmt::format("cannot connect to {}", team.name(peer)));
    outgoing_[peer].wing = wing;
    if (!endpoint) {
      lose(peer, endpoint.error().text, false);
      continue;
    }
    outgoing_[peer].endpoint = *endpoint;
    wing->peers[*endpoint] = peer;
  }
  return {};
}

Status Links::attach(const Memory& memory) {
  detach();
  for (const auto& wing : wings_) {
    if (!wing) continue;
    auto in = wing->worker->register_memory({memory.in}, Access::local);
    if (!in) return pass(in);
    auto out = wing->worker->register_memory({memory.out}, Access::local);
    if (!out) return pass(out);
    wing->in = *in, wing->out = *out;
  }
  attached_ = true;
  return {};
}

void Links::detach() {
  if (!std::exchange(attached_, false)) return;
  for (const auto& wing : wings_) {
    if (!wing) continue;
    wing->worker->deregister(wing->in);
    wing->worker->deregister(wing->out);
  }
}

Posted Links::put(int peer, Space space, uint64_t from, uint64_t bytes, uint64_t to,
                  uint32_t immediate, uint64_t operation) {
  Outgoing& link = outgoing_.at(peer);
  if (link.retired && bytes == 0) return Posted::ok;
  if (link.key.empty() || link.completed + 1 < operation) return Posted::again;
  const Wing& wing = *link.wing;
  const RegionId region = space == Space::in    ? wing.in
                          : space == Space::out ? wing.out
                                                : wing.scratch;
  return wing.worker->put(link.endpoint, {region, from, bytes}, link.key, to, immediate, 0);
}

Posted Links::declare(int peer, uint64_t operation, std::string_view call) {
  const Outgoing& link = outgoing_.at(peer);
  if (link.key.empty()) return Posted::again;
  return link.wing->worker->message(link.endpoint,
                                    encode(kDeclared, operation, std::as_bytes(std::span(call))));
}

void Links::announce(uint64_t completed) {
  completed_ = completed;
  flush_announcements();
}

void Links::flush_announcements() {
  for (Incoming& link : incoming_) {
    if (!link.greeted) greet(link);
    if (!link.greeted || link.announced == completed_) continue;
    if (link.wing->worker->message(link.endpoint, encode(kCompleted, completed_, {})) == Posted::ok)
      link.announced = completed_;
  }
}

void Links::greet(Incoming& link) {
  const Blob key = link.wing->worker->key(link.wing->scratch);
  if (link.wing->worker->message(link.endpoint, encode(kGreeting, completed_, key)) != Posted::ok)
    return;
  link.greeted = true;
  link.announced = completed_;
}

bool Links::all_peers(const std::function<bool(int, uint64_t)>& holds) const {
  return std::all_of(outgoing_.begin(), outgoing_.end(),
                     [&](const auto& entry) { return holds(entry.first, entry.second.completed); });
}

Status Links::poll(const Handlers& handlers) {
  for (const auto& wing : wings_) {
    if (!wing) continue;
    const auto polled = poll(*wing, handlers);
    if (!polled) return polled;
  }
  flush_announcements();
  return {};
}

Status Links::poll(Wing& wing, const Handlers& handlers) {
  events_.clear();
  const auto polled = wing.worker->poll(events_);
  for (Event& event : events_) handle(wing, event, handlers);
  return polled;
}

void Links::handle(Wing& wing, Event& event, const Handlers& handlers) {
  if (event.kind == Event::Kind::accepted) return accepted(wing, event);
  const auto peer = wing.peers.find(event.endpoint);
  if (peer == wing.peers.end()) return;  // closed meanwhile
  switch (event.kind) {
    case Event::Kind::put_done:
      return handlers.put_done();
    case Event::Kind::notified:
      return handlers.notified(peer->second, event.immediate);
    case Event::Kind::message:
      return heard(peer->second, event, handlers);
    case Event::Kind::failed:
      return failed(peer->second, event);
    default:
      return;
  }
}

void Links::accepted(Wing& wing, const Event& event) {
  int rank = -1;
  if (event.bytes.size() == sizeof rank) memcpy(&rank, event.bytes.data(), sizeof rank);
  if (rank < 0 || rank >= ranks_) return wing.worker->close(event.endpoint);
  wing.peers[event.endpoint] = rank;
  incoming_.push_back({&wing, event.endpoint, rank, false, false, 0});
}

void Links::heard(int rank, const Event& event, const Handlers& handlers) {
  constexpr const char* kNonsense = "it sent a message that makes no sense";
  if (event.bytes.size() < kFixed) return lose(rank, kNonsense, false);
  const auto type = static_cast<Type>(event.bytes[0]);
  const auto more = std::span(event.bytes).subspan(kFixed);
  uint64_t number = 0;
  memcpy(&number, event.bytes.data() + 1, sizeof number);
  if (type == kDeclared)
    return handlers.declared(rank, number,
                             {reinterpret_cast<const char*>(more.data()), more.size()});
  const auto link = outgoing_.find(rank);
  if (link == outgoing_.end()) return lose(rank, kNonsense, false);
  link->second.completed = number;
  if (type == kGreeting) link->second.key.assign(more.begin(), more.end());
}

void Links::failed(int rank, Event& event) {
  for (Incoming& link : incoming_)
    link.failed |= link.rank == rank && link.endpoint == event.endpoint;
  lose(rank, std::move(event.why), event.died);
}

void Links::lose(int rank, std::string why, bool died) {
  Lost& lost = lost_.emplace(rank, Lost{std::move(why), Clock::now()}).first->second;
  lost.died |= died;
}

void Links::retire(int rank) {
  if (const auto link = outgoing_.find(rank); link != outgoing_.end()) link->second.retired = true;
}

bool Links::hears(int rank) const {
  return std::any_of(incoming_.begin(), incoming_.end(),
                     [rank](const Incoming& link) { return link.rank == rank && !link.failed; });
}

bool Links::arm() {
  for (const auto& wing : wings_)
    if (wing && !wing->worker->arm()) return false;
  return true;
}

std::vector<int> Links::fds() const {
  std::vector<int> fds;
  for (const auto& wing : wings_)
    if (wing) fds.push_back(wing->worker->fd());
  return fds;
}

LinkTraffic Links::traffic() const {
  LinkTraffic traffic = closed_;
  for (const auto& [rank, link] : outgoing_) {
    if (link.key.empty()) continue;  // nothing has been put yet
    const uint64_t bytes = link.wing->worker->counters(link.endpoint).put_bytes;
    (link.wing == wings_[kInside].get() ? traffic.inside_bytes : traffic.across_bytes) += bytes;
  }
  return traffic;
}

void Links::close_all() {
  closed_ = traffic();
  for (const auto& wing : wings_) {
    if (!wing) continue;
    for (const auto& [endpoint, rank] : wing->peers) wing->worker->close(endpoint);
    wing->peers.clear();
  }
  detach();
  outgoing_.clear();
  incoming_.clear();
}

}  // namespace crosstie
