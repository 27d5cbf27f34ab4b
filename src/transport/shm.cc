// SPDX-License-Identifier: Apache-2.0
#include "transport/shm.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <set>

#include "transport/events.h"
#include "transport/poller.h"
#include "transport/shm_link.h"
#include "transport/wire/key.h"

namespace crosstie {
namespace {

using State = ShmLink::State;
using wire::Packet;

// Entries that one poll takes from one peer, so that a busy one does not starve others.
constexpr size_t kEntriesPerPoll = 1024;
constexpr int kPacketsPerPoll = 64;
constexpr const char* kGone = "the peer's process is gone";
// While the rings are busy the descriptors are looked at every so many polls only.
constexpr uint32_t kPollsPerLook = 64;
// When to try again what the kernel had no room for.
constexpr auto kRetry = std::chrono::milliseconds(10);
// Endpoints' tags are their ids.
constexpr Poller::Tag kListenerTag = Poller::Tag{1} << 32;
constexpr Poller::Tag kBellTag = kListenerTag + 1;
// With the endpoint's id: that the peer's process has ended.
constexpr Poller::Tag kProcessTags = Poller::Tag{1} << 33;

Poller::Tag tag_of(EndpointId id) { return static_cast<Poller::Tag>(id); }

class ShmWorker final : public Worker {
 public:
  ShmWorker(const TransportOptions& options, const Log& log, Poller poller, Fd bell)
      : options_(options), log_(log), poller_(std::move(poller)), bell_(std::move(bell)) {}
  ~ShmWorker() override;

  std::string_view transport() const override { return "shm"; }
  std::span<const Device> devices() const override { return std::span(&device_, 1); }
  Result<Blob> listen(size_t device) override;
  Result<EndpointId> connect(size_t device, std::span<const std::byte> address,
                             std::span<const std::byte> hello, const Service& service) override;
  Result<RegionId> register_memory(const MemoryView& memory, Access access) override;
  Posted deregister(RegionId region) override;
  Blob key(RegionId region) const override { return wire::key_of(regions_, region, nonce_); }
  Posted put(EndpointId endpoint, Source source, std::span<const std::byte> key, uint64_t to,
             std::optional<uint32_t> immediate, uint64_t context) override;
  Posted message(EndpointId endpoint, std::span<const std::byte> bytes) override;
  Status poll(std::vector<Event>& events) override;
  int fd() const override { return poller_.fd(); }
  bool arm() override;
  Posted fence(EndpointId endpoint) override;
  void close(EndpointId endpoint) override;
  EndpointCounters counters(EndpointId endpoint) const override;

 private:
  ShmLink* find(EndpointId id);
  ShmLink& add_link(State state);
  Posted may_post(const ShmLink* link);
  Posted refuse(ShmLink& link, std::string_view why);

  Status dial(ShmLink& link);
  void accept_strangers();
  Status admit(Fd socket);
  void handle(const Poller::Ready& ready);
  void read(EndpointId id);
  void bury(EndpointId id);
  Status handle(ShmLink& link, Received& received);
  Status welcome(ShmLink& link, Received& received);
  Status be_welcomed(ShmLink& link, Received& received);
  Status hear(ShmLink& link, Received& received);
  void become_ready(ShmLink& link);

  void tell_new_regions();
  void tell_new_regions(ShmLink& link);
  void tell_region(ShmLink& link, RegionId id);
  void tell(ShmLink& link, const Packet& packet);
  void tell_waiting(ShmLink& link);
  Result<Sent> send(ShmLink& link, const Packet& packet);

  bool drain_rings();
  Result<size_t> drain(ShmLink& link, size_t limit);
  void hang_up(ShmLink& link);
  Status look();
  void quiet_bell();
  void ring_alarms();
  void ring_alarm(ShmLink& link);
  void fail_link(ShmLink& link, std::string_view why, bool died = false);
  void say_goodbye(ShmLink& link, std::string_view why);

  TransportOptions options_;
  Log log_;
  const Device device_{"shm", ""};
  Poller poller_;
  Fd bell_;  // peers ring it to wake us
  Acceptor acceptor_{kListenerTag};
  wire::ShmAddress address_;
  uint64_t nonce_ = wire::make_nonce();
  Regions regions_;
  std::atomic<bool> untold_ = false;  // there are regions that links have yet to be told of
  std::set<RegionId> leaving_;        // regions whose deregistration has been announced
  std::map<EndpointId, ShmLink> links_;
  Events events_;
  int puts_done_ = 0;  // since the last poll
  Retry retry_;
  bool armed_ = false;
  uint32_t polls_ = 0;
  uint32_t last_ = 0;
};

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

// Connects and says hello; where the kernel has no room for either, the alarm tries again.
Status ShmWorker::dial(ShmLink& link) {
  poller_.set_alarm(tag_of(link.id), link.deadline.sooner(Deadline(kRetry)).at());
  auto socket = dial_unix(link.address.name);
  if (!socket) return pass(socket);
  if (!*socket) return {};
  if (const auto process = peer_process(socket->get()))
    link.where = fmt::format("process {} of this host", process->pid);
  Packet hello;
  hello.kind = Packet::Kind::hello;
  hello.ring = static_cast<uint32_t>(options_.shm_ring);
  hello.to = link.peer;
  hello.from = nonce_;
  hello.set_text({reinterpret_cast<const char*>(link.hello.data()), link.hello.size()});
  const int descriptors[] = {link.rings_fd(), bell_.get()};
  const auto sent = send_packet(socket->get(), hello, descriptors);
  if (!sent) return pass(sent);
  if (*sent == Sent::again) return {};
  if (const auto added = poller_.add(socket->get(), EPOLLIN, tag_of(link.id)); !added)
    return pass(added);
  link.socket = std::move(*socket);
  link.state = State::greeting;
  poller_.set_alarm(tag_of(link.id), link.deadline.at());
  return {};
}

void ShmWorker::accept_strangers() {
  std::string trouble;
  for (Fd& socket : acceptor_.accept(poller_, &trouble))
    if (const auto admitted = admit(std::move(socket)); !admitted)
      log_.debug("shm: a connection was turned away: {}", admitted.error().text);
  if (!trouble.empty()) log_.warn("shm: {}", trouble);
}

Status ShmWorker::admit(Fd socket) {
  const auto process = peer_process(socket.get());
  if (!process) return pass(process);
  if (process->user != geteuid())
    return fail(Code::peer, "process {} runs as user {}", process->pid, process->user);
  ShmLink& link = add_link(State::expecting);
  link.where = fmt::format("process {} of this host", process->pid);
  link.socket = std::move(socket);
  const auto added = poller_.add(link.socket.get(), EPOLLIN, tag_of(link.id));
  if (!added) links_.erase(link.id);
  return added;
}

void ShmWorker::handle(const Poller::Ready& ready) {
  if (ready.tag == kListenerTag) return accept_strangers();
  if (ready.tag == kBellTag) return quiet_bell();
  const auto id = static_cast<EndpointId>(ready.tag);
  return ready.tag & kProcessTags ? bury(id) : read(id);
}

void ShmWorker::read(EndpointId id) {
  for (int i = 0; i < kPacketsPerPoll; i++) {
    // A link may have gone since the kernel reported it, or by what the last packet said.
    ShmLink* link = find(id);
    if (!link || link->hung_up) return;
    auto received = receive_packet(link->socket.get());
    if (received && received->what == Received::What::nothing) return;
    const Status handled = received ? handle(*link, *received) : pass(received);
    if (!handled) fail_link(*link, handled.error().text);
  }
}

// Its last words come first.
void ShmWorker::bury(EndpointId id) {
  read(id);
  ShmLink* link = find(id);
  if (!link) return;
  poller_.remove(link->process.get());
  link->process.reset();
  hang_up(*link);
  fail_link(*link, kGone, true);
}

Status ShmWorker::handle(ShmLink& link, Received& received) {
  if (received.what == Received::What::ended) {
    hang_up(link);
    if (link.state == State::failed) return {};
    return fail(Code::peer, "{}",
                link.state == State::ready ? kGone : "the peer left in the handshake");
  }
  switch (link.state) {
    case State::expecting:
      return welcome(link, received);
    case State::greeting:
      return be_welcomed(link, received);
    case State::ready:
      return hear(link, received);
    case State::dialling:
    case State::failed:
      break;
  }
  return {};
}

Status ShmWorker::welcome(ShmLink& link, Received& received) {
  const Packet& packet = received.packet;
  if (packet.kind != Packet::Kind::hello) return fail(Code::peer, "handshake: no hello came");
  if (packet.to != nonce_) return fail(Code::peer, "handshake: the peer means another worker");
  if (const auto attached = link.attach_rings(received); !attached) return attached;
  link.peer = packet.from;
  Packet answer;
  answer.kind = Packet::Kind::welcome;
  answer.to = packet.from;
  answer.from = nonce_;
  const auto sent = send(link, answer);
  if (!sent) return pass(sent);
  if (*sent == Sent::again) return fail(Code::exhausted, "handshake: no room for the answer");
  events_.accepted(link.id, std::as_bytes(std::span(packet.get_text())));
  become_ready(link);
  return {};
}

Status ShmWorker::be_welcomed(ShmLink& link, Received& received) {
  const Packet& packet = received.packet;
  if (packet.kind != Packet::Kind::welcome || packet.from != link.peer ||
      received.descriptors.size() != 1)
    return fail(Code::peer, "handshake: no welcome came");
  if (const auto attached = link.attach_bell(std::move(received.descriptors[0])); !attached)
    return attached;
  events_.connected(link.id);
  become_ready(link);
  return {};
}

void ShmWorker::become_ready(ShmLink& link) {
  poller_.cancel_alarm(tag_of(link.id));
  link.state = State::ready;
  tell_new_regions(link);
  if (link.watch_process())
    static_cast<void>(poller_.add(link.process.get(), EPOLLIN, kProcessTags | tag_of(link.id)));
}

Status ShmWorker::hear(ShmLink& link, Received& received) {
  const Packet& packet = received.packet;
  switch (packet.kind) {
    case Packet::Kind::region:
      return link.attach_region(received);
    case Packet::Kind::forget:
      link.forget_region(packet.region);
      return {};
    case Packet::Kind::goodbye:
      return packet.text_bytes == 0 ? fail(Code::peer, "closed by peer")
                                    : fail(Code::peer, "the peer gave up: {}", packet.get_text());
    default:
      return fail(Code::peer, "a packet of unexpected kind {}", static_cast<int>(packet.kind));
  }
}

Result<RegionId> ShmWorker::register_memory(const MemoryView& memory, Access access) {
  if (access == Access::remote) {
    struct stat status = {};
    const int seals = fcntl(memory.fd, F_GET_SEALS);
    if (memory.fd < 0 || seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(memory.fd, &status) != 0)
      return fail(Code::unsupported,
                  "peers of this host can only put into a shared buffer, not into plain memory");
    if (memory.fd_offset + memory.bytes.size() > static_cast<size_t>(status.st_size))
      return fail(Code::invalid, "the region reaches beyond its shared buffer");
  }
  const RegionId id = regions_.add(memory, access);
  if (access == Access::remote) {
    untold_ = true;  // the Worker's own thread tells
    eventfd_write(bell_.get(), 1);
  }
  return id;
}

Posted ShmWorker::deregister(RegionId id) {
  const Region* region = regions_.find(id);
  if (!region) return Posted::ok;
  const bool remote = region->access == Access::remote;
  tell_new_regions();
  if (remote && leaving_.insert(id).second) {
    Packet packet;
    packet.kind = Packet::Kind::forget;
    packet.region = static_cast<uint64_t>(id);
    for (auto& [endpoint, link] : links_) {
      if (link.state != State::ready) continue;
      link.announce_deregistration();
      tell(link, packet);
    }
  }
  for (const auto& [endpoint, link] : links_)
    if (link.mapped() && link.being_written() == static_cast<uint64_t>(id)) return retry_.refuse();
  leaving_.erase(id);
  regions_.remove(id);
  return Posted::ok;
}

void ShmWorker::tell_new_regions() {
  if (!untold_.exchange(false)) return;
  for (auto& [endpoint, link] : links_)
    if (link.state == State::ready) tell_new_regions(link);
}

void ShmWorker::tell_new_regions(ShmLink& link) {
  for (const RegionId id : regions_.remote_after(link.last_told)) {
    if (!leaving_.contains(id)) tell_region(link, id);
    link.last_told = id;
  }
}

void ShmWorker::tell_region(ShmLink& link, RegionId id) {
  const Region& region = *regions_.find(id);
  Packet packet;
  packet.kind = Packet::Kind::region;
  packet.region = static_cast<uint64_t>(id);
  packet.offset = region.memory.fd_offset;
  packet.bytes = region.memory.bytes.size();
  tell(link, packet);
}

void ShmWorker::tell(ShmLink& link, const Packet& packet) {
  link.packets.push_back(packet);
  if (link.packets.size() == 1) tell_waiting(link);
}

// An error is left to the socket's reader, which also finds what the peer had to say.
void ShmWorker::tell_waiting(ShmLink& link) {
  while (!link.packets.empty()) {
    const auto sent = send(link, link.packets.front());
    if (sent && *sent == Sent::again)
      return poller_.set_alarm(tag_of(link.id), Clock::now() + kRetry);
    link.packets.pop_front();
  }
}

Result<Sent> ShmWorker::send(ShmLink& link, const Packet& packet) {
  int descriptor = -1;
  if (packet.kind == Packet::Kind::welcome) descriptor = bell_.get();
  if (packet.kind == Packet::Kind::region) {
    // By now it may be gone; then its memory may be, too, and the peer need not know of it.
    const Region* region = regions_.find(static_cast<RegionId>(packet.region));
    if (!region) return Sent::ok;
    descriptor = region->memory.fd;
  }
  return send_packet(link.socket.get(), packet, std::span(&descriptor, descriptor < 0 ? 0 : 1));
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
  links_.erase(endpoint);
  events_.forget(endpoint);
}

EndpointCounters ShmWorker::counters(EndpointId endpoint) const {
  const auto it = links_.find(endpoint);
  return it == links_.end() ? EndpointCounters{} : it->second.counters;
}

}  // namespace

Result<std::unique_ptr<Worker>> make_shm_worker(const TransportOptions& options, const Log& log) {
  if (const auto sane = check(options); !sane) return pass(sane);
  auto poller = Poller::create();
  if (!poller) return pass(poller);
  Fd bell(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!bell) return fail_errno(Code::exhausted, "eventfd");
  if (const auto added = poller->add(bell.get(), EPOLLIN, kBellTag); !added) return pass(added);
  return std::make_unique<ShmWorker>(options, log, std::move(*poller), std::move(bell));
}

}  // namespace crosstie
