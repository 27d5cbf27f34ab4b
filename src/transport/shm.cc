// SPDX-License-Identifier: Apache-2.0
#include "transport/shm.h"

#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/shm_worker.h"

namespace crosstie {
namespace {

// Entries that one poll takes from one peer, so that a busy one does not starve others.
constexpr size_t kEntriesPerPoll = 1024;
// While the rings are busy the descriptors are looked at every so many polls only.
constexpr uint32_t kPollsPerLook = 64;

}  // namespace

using State = ShmLink::State;
using wire::Packet;

ShmWorker::~ShmWorker() {
  while (!links_.empty()) close(links_.begin()->first);
}

Result<Blob> ShmWorker::listen(size_t) {
  if (!acceptor_) {
    [[maybe_unused]] const auto got = getrandom(address_.name.data(), address_.name.size(), 0);
    auto socket = listen_unix(address_.name);
    if (!socket) return pass(socket);
    if (const auto started = acceptor_.start(poller_, std::move(*socket)); !started)
      return pass(started);
    address_.worker = nonce_;
  }
  return wire::blob_of(address_);
}

Result<EndpointId> ShmWorker::connect(size_t, std::span<const std::byte> address,
                                      std::span<const std::byte> hello, const Service&) {
  wire::ShmAddress to;
  if (!wire::read(address, to) || to.magic != wire::ShmAddress::kMagic)
    return fail(Code::invalid, "the address ({} bytes) is not of the shm transport",
                address.size());
  if (hello.size() > kMaxHello) return fail(Code::invalid, "a hello of {} bytes", hello.size());
  ShmLink& link = add_link(State::dialling);
  link.where = fmt::format("shm worker {:016x}", to.worker);
  link.address = to;
  link.peer = to.worker;
  link.hello.assign(hello.begin(), hello.end());
  auto dialled = link.make_rings(static_cast<uint64_t>(options_.shm_ring));
  if (dialled) dialled = dial(link);
  if (!dialled) {
    const auto error = pass(dialled, link.where);
    links_.erase(link.id);
    return error;
  }
  return link.id;
}

ShmLink* ShmWorker::find(EndpointId id) {
  const auto it = links_.find(id);
  return it == links_.end() ? nullptr : &it->second;
}

ShmLink& ShmWorker::add_link(State state) {
  const auto id = static_cast<EndpointId>(++last_);
  ShmLink& link = links_[id];
  link.id = id;
  link.state = state;
  link.deadline = Deadline(options_.handshake_timeout);
  poller_.set_alarm(tag_of(id), link.deadline.at());
  return link;
}

Posted ShmWorker::may_post(const ShmLink* link) {
  if (!link || link->state == State::failed) return Posted::error;
  // Events that nobody has fetched must not pile up.
  const bool may = link->state == State::ready && puts_done_ < options_.queue_depth;
  return may ? Posted::ok : retry_.refuse();
}

Posted ShmWorker::refuse(ShmLink& link, std::string_view why) {
  fail_link(link, why);
  return Posted::error;
}

Posted ShmWorker::put(EndpointId endpoint, Source source, std::span<const std::byte> key,
                      uint64_t to, std::optional<uint32_t> immediate, uint64_t context) {
  ShmLink* link = find(endpoint);
  if (const Posted may = may_post(link); may != Posted::ok) return may;
  std::span<const std::byte> from;
  RegionId region{};
  if (source.bytes > 0) {
    const auto stretch = regions_.source(source);
    if (!stretch) return refuse(*link, stretch.error().text);
    const auto named = wire::region_of(key, link->peer);
    if (!named) return refuse(*link, named.error().text);
    from = *stretch;
    region = *named;
  }
  std::string why;
  const Posted posted = link->put(from, region, to, immediate, &why);
  if (posted == Posted::error) return refuse(*link, why);
  if (posted == Posted::again) return retry_.refuse();
  link->counters.puts++;
  link->counters.put_bytes += source.bytes;
  if (source.bytes > 0) {
    events_.put_done(endpoint, context);
    puts_done_++;
  }
  return Posted::ok;
}

Posted ShmWorker::message(EndpointId endpoint, std::span<const std::byte> bytes) {
  ShmLink* link = find(endpoint);
  if (const Posted may = may_post(link); may != Posted::ok) return may;
  if (bytes.empty() || bytes.size() > kMaxMessage)
    return refuse(*link, fmt::format("a message of {} bytes", bytes.size()));
  std::string why;
  const Posted posted = link->message(bytes, &why);
  if (posted == Posted::error) return refuse(*link, why);
  if (posted == Posted::again) return retry_.refuse();
  link->counters.messages++;
  return posted;
}

Status ShmWorker::poll(std::vector<Event>& events) {
  tell_new_regions();
  bool must_look = ++polls_ % kPollsPerLook == 0;
  if (std::exchange(armed_, false)) {
    must_look = true;  // the bell may have rung
    for (auto& [id, link] : links_)
      if (link.state == State::ready) link.disarm();
  }
  if (!drain_rings() || must_look) {
    if (const auto looked = look(); !looked) return looked;
    ring_alarms();
  }
  if (std::exchange(puts_done_, 0) > 0) retry_.worthwhile();
  events_.hand_over(events);
  return {};
}

bool ShmWorker::drain_rings() {
  bool busy = false;
  for (auto& [id, link] : links_) {
    if (link.state != State::ready) continue;
    const auto drained = drain(link, kEntriesPerPoll);
    if (!drained)
      fail_link(link, drained.error().text);
    else
      busy = busy || *drained > 0;
  }
  return busy;
}

Result<size_t> ShmWorker::drain(ShmLink& link, size_t limit) {
  const auto drained =
      link.incoming().drain(limit, [&](ShmEntry entry, std::span<const std::byte> text) {
        if (entry.kind == ShmEntry::Kind::notification)
          events_.notified(link.id, entry.value);
        else
          events_.message(link.id, text);
      });
  if (drained && *drained > 0) link.wake(kWakeOnRoom);
  return drained;
}

Status ShmWorker::look() {
  const auto ready = poller_.look();
  if (!ready) return pass(ready);
  if (!ready->empty()) retry_.worthwhile();
  for (const Poller::Ready& one : *ready) handle(one);
  return {};
}

void ShmWorker::quiet_bell() {
  uint64_t rung = 0;
  [[maybe_unused]] const ssize_t got = ::read(bell_.get(), &rung, sizeof rung);
}

void ShmWorker::ring_alarms() {
  for (const Poller::Tag tag : poller_.ring_alarms()) {
    if (tag == kListenerTag)
      acceptor_.resume(poller_);
    else if (ShmLink* link = find(static_cast<EndpointId>(tag)))
      ring_alarm(*link);
  }
}

void ShmWorker::ring_alarm(ShmLink& link) {
  if (link.state == State::ready) return tell_waiting(link);
  if (link.deadline.expired())
    return fail_link(
        link, fmt::format("no handshake within {}", duration_text(options_.handshake_timeout)));
  if (const auto dialled = dial(link); !dialled) fail_link(link, dialled.error().text);
}

bool ShmWorker::arm() {
  if (!events_.empty() || retry_.due()) return false;
  armed_ = true;
  bool quiet = true;
  for (auto& [id, link] : links_)
    if (link.state == State::ready) quiet = link.arm() && quiet;
  return quiet;
}

void ShmWorker::hang_up(ShmLink& link) {
  link.hung_up = true;
  poller_.remove(link.socket.get());
}

// What the peer had still put into the ring comes before its end.
void ShmWorker::fail_link(ShmLink& link, std::string_view why, bool died) {
  const State state = std::exchange(link.state, State::failed);
  if (state == State::failed) return;
  poller_.cancel_alarm(tag_of(link.id));
  if (state == State::expecting) {
    log_.debug("shm: {} was turned away: {}", link.where, why);
    links_.erase(link.id);
    return;
  }
  if (state == State::ready) {
    [[maybe_unused]] const auto drained = drain(link, link.incoming().count());
    say_goodbye(link, why);
  }
  events_.failed(link.id, fmt::format("{}: {}", link.where, why), died);
}

// The socket stays, to learn when the peer is gone for good.
void ShmWorker::say_goodbye(ShmLink& link, std::string_view why) {
  link.fence();
  Packet packet;
  packet.kind = Packet::Kind::goodbye;
  packet.set_text(why);
  [[maybe_unused]] const auto sent = send_packet(link.socket.get(), packet, {});
  shutdown(link.socket.get(), SHUT_WR);
}

Posted ShmWorker::fence(EndpointId endpoint) {
  ShmLink* link = find(endpoint);
  if (!link) return Posted::error;
  link->state = State::failed;
  poller_.cancel_alarm(tag_of(endpoint));
  events_.forget(endpoint);
  if (!link->mapped()) return Posted::ok;
  link->fence();
  return link->being_written() ? retry_.refuse() : Posted::ok;
}

void ShmWorker::close(EndpointId endpoint) {
  ShmLink* link = find(endpoint);
  if (!link) return;
  poller_.cancel_alarm(tag_of(endpoint));
  if (link->mapped() && link->socket) say_goodbye(*link, "");
  if (link->socket && !link->hung_up) poller_.remove(link->socket.get());
  if (link->process) poller_.remove(link->process.get());
  links_.erase(endpoint);
  events_.forget(endpoint);
}

EndpointCounters ShmWorker::counters(EndpointId endpoint) const {
  const auto it = links_.find(endpoint);
  return it == links_.end() ? EndpointCounters{} : it->second.counters;
}

Result<std::unique_ptr<Worker>> make_shm_worker(const TransportOptions& options, const Log& log) {
  if (const auto sane = check(options); !sane) return pass(sane);
  auto poller = Poller::create();
  if (!poller) return pass(poller);
  Fd bell(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!bell) return fail_errno(Code::exhausted, "eventfd");
  if (const auto added = poller->add(bell.get(), EPOLLIN, ShmWorker::kBellTag); !added)
    return pass(added);
  return std::make_unique<ShmWorker>(options, log, std::move(*poller), std::move(bell));
}

}  // namespace crosstie
