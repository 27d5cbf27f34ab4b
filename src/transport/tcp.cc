// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp.h"

#include <map>

#include "transport/poller.h"
#include "transport/tcp_devices.h"
#include "transport/tcp_link.h"
#include "transport/tcp_socket.h"
#include "transport/wire/key.h"

namespace crosstie {
namespace {

using State = TcpLink::State;
using wire::Frame;

// What one poll moves each way on one connection, so that a busy one does not starve others.
constexpr size_t kBudget = 1 << 20;
// Endpoints' tags are their ids; the listener's of device i is this and i.
constexpr Poller::Tag kListenerTag = Poller::Tag{1} << 32;

Poller::Tag tag_of(EndpointId id) { return static_cast<Poller::Tag>(id); }

class TcpWorker final : public Worker {
 public:
  TcpWorker(const TransportOptions& options, const std::vector<TcpDevice>& devices, const Log& log,
            Poller poller);
  ~TcpWorker() override;

  std::string_view transport() const override { return "tcp"; }
  std::span<const Device> devices() const override { return devices_; }
  Result<Blob> listen(size_t device) override;
  Result<EndpointId> connect(size_t device, std::span<const std::byte> address,
                             std::span<const std::byte> hello, const Service& service) override;
  Result<RegionId> register_memory(const MemoryView& memory, Access access) override {
    return regions_.add(memory, access);
  }
  Posted deregister(RegionId region) override;
  Blob key(RegionId region) const override;
  Posted put(EndpointId endpoint, Source source, std::span<const std::byte> key, uint64_t to,
             std::optional<uint32_t> immediate, uint64_t context) override;
  Posted message(EndpointId endpoint, std::span<const std::byte> bytes) override;
  Status poll(std::vector<Event>& events) override;
  int fd() const override { return poller_.fd(); }
  bool arm() override { return events_.empty() && dirty_.empty() && !retry_.due(); }
  Posted fence(EndpointId endpoint) override;
  void close(EndpointId endpoint) override;
  EndpointCounters counters(EndpointId endpoint) const override;

 private:
  // Where a device is reached.
  struct Listener {
    wire::TcpAddress address;
    Acceptor acceptor;
  };
  static bool is_listeners(Poller::Tag tag) { return tag >= kListenerTag; }
  Listener& listener(Poller::Tag tag) { return listeners_[tag - kListenerTag]; }

  TcpLink* find(EndpointId id);
  TcpLink& add_link(State state, Fd socket);
  Status watch(TcpLink& link, uint32_t events);
  Posted may_post(const TcpLink* link);
  void enqueue(TcpLink& link, TcpSender::Post post);

  void accept_strangers(Acceptor& acceptor);
  void handle(const Poller::Ready& ready);
  void handle(TcpLink& link, uint32_t events);
  Status greet(TcpLink& link);
  Status welcome(TcpLink& link);
  Status be_welcomed(TcpLink& link);
  void become_ready(TcpLink& link);
  void move_in(TcpLink& link);
  void move_out(TcpLink& link);
  void flush();
  void ring_alarms();
  void fail_link(TcpLink& link, std::string_view why);
  void disconnect(TcpLink& link);

  TransportOptions options_;
  Log log_;
  Poller poller_;
  std::vector<Device> devices_;
  std::vector<Listener> listeners_;  // by device
  uint64_t nonce_ = wire::make_nonce();
  Regions regions_;
  std::map<EndpointId, TcpLink> links_;
  std::vector<EndpointId> dirty_;  // links with posts that no full socket holds up
  Events events_;
  Retry retry_;
  uint32_t last_ = 0;
};

TcpWorker::TcpWorker(const TransportOptions& options, const std::vector<TcpDevice>& devices,
                     const Log& log, Poller poller)
    : options_(options), log_(log), poller_(std::move(poller)) {
  for (const TcpDevice& one : devices) {
    listeners_.push_back({one.address, Acceptor(kListenerTag + devices_.size())});
    devices_.push_back(one.device);
  }
}

TcpWorker::~TcpWorker() {
  while (!links_.empty()) close(links_.begin()->first);
}

Result<Blob> TcpWorker::listen(size_t device) {
  auto& [address, acceptor] = listeners_.at(device);
  if (!acceptor) {
    auto socket = listen_tcp(address);
    if (!socket) return pass(socket);
    if (const auto started = acceptor.start(poller_, std::move(*socket)); !started)
      return pass(started);
    address.worker = nonce_;
  }
  return wire::blob_of(address);
}

Result<EndpointId> TcpWorker::connect(size_t device, std::span<const std::byte> address,
                                      std::span<const std::byte> hello, const Service& service) {
  wire::TcpAddress to;
  if (!wire::read(address, to) || to.magic != wire::TcpAddress::kMagic ||
      (to.family != 4 && to.family != 6))
    return fail(Code::invalid, "the address ({} bytes) is not of the tcp transport",
                address.size());
  if (hello.size() > kMaxHello) return fail(Code::invalid, "a hello of {} bytes", hello.size());
  auto socket = dial_tcp(listeners_.at(device).address, to, service, options_);
  if (!socket) return pass(socket, to_text(to));
  TcpLink& link = add_link(State::connecting, std::move(*socket));
  link.where = to_text(to);
  link.peer = to.worker;
  link.hello.to = to.worker;
  link.hello.from = nonce_;
  link.hello.hello_bytes = static_cast<uint16_t>(hello.size());
  std::copy(hello.begin(), hello.end(), link.hello.hello.begin());
  if (const auto watched = watch(link, EPOLLOUT); !watched) return pass(watched, to_text(to));
  return link.id;
}

TcpLink* TcpWorker::find(EndpointId id) {
  const auto it = links_.find(id);
  return it == links_.end() ? nullptr : &it->second;
}

TcpLink& TcpWorker::add_link(State state, Fd socket) {
  const auto id = static_cast<EndpointId>(++last_);
  TcpLink& link = links_[id];
  link.id = id;
  link.state = state;
  link.socket = std::move(socket);
  return link;
}

// Adds a new link to the poll set, with the handshake's deadline; a link that cannot be is
// forgotten.
Status TcpWorker::watch(TcpLink& link, uint32_t events) {
  const auto added = poller_.add(link.socket.get(), events, tag_of(link.id));
  if (!added) {
    links_.erase(link.id);
    return pass(added);
  }
  poller_.set_alarm(tag_of(link.id), Clock::now() + options_.handshake_timeout);
  return {};
}

Posted TcpWorker::deregister(RegionId region) {
  for (auto& [id, link] : links_)
    if (link.state == State::ready && (link.in.fills(region) || link.out.uses(region)))
      fail_link(link, fmt::format("region {} was deregistered under a put",
                                  static_cast<uint64_t>(region)));
  regions_.remove(region);
  return Posted::ok;
}

Blob TcpWorker::key(RegionId region) const { return wire::key_of(regions_, region, nonce_); }

Posted TcpWorker::may_post(const TcpLink* link) {
  if (!link || link->state == State::failed) return Posted::error;
  const bool may =
      link->state == State::ready && link->out.size() < static_cast<size_t>(options_.queue_depth);
  return may ? Posted::ok : retry_.refuse();
}

void TcpWorker::enqueue(TcpLink& link, TcpSender::Post post) {
  link.out.push(std::move(post));
  if (link.blocked || std::exchange(link.dirty, true)) return;
  dirty_.push_back(link.id);
}

Posted TcpWorker::put(EndpointId endpoint, Source source, std::span<const std::byte> key,
                      uint64_t to, std::optional<uint32_t> immediate, uint64_t context) {
  TcpLink* link = find(endpoint);
  if (const Posted may = may_post(link); may != Posted::ok) return may;
  TcpSender::Post post;
  post.frame.notifies = immediate.has_value();
  post.frame.immediate = immediate.value_or(0);
  post.context = context;
  if (source.bytes > 0) {
    const auto from = regions_.source(source);
    const auto region = wire::region_of(key, link->peer);
    if (!from || !region) {
      fail_link(*link, from ? region.error().text : from.error().text);
      return Posted::error;
    }
    post.frame.bytes = source.bytes;
    post.frame.region = static_cast<uint64_t>(*region);
    post.frame.offset = to;
    post.payload = *from;
    post.source = source.region;
  }
  enqueue(*link, std::move(post));
  link->counters.puts++;
  link->counters.put_bytes += source.bytes;
  return Posted::ok;
}

Posted TcpWorker::message(EndpointId endpoint, std::span<const std::byte> bytes) {
  TcpLink* link = find(endpoint);
  if (const Posted may = may_post(link); may != Posted::ok) return may;
  if (bytes.empty() || bytes.size() > kMaxMessage) {
    fail_link(*link, fmt::format("a message of {} bytes", bytes.size()));
    return Posted::error;
  }
  TcpSender::Post post;
  post.frame.kind = Frame::Kind::message;
  post.frame.bytes = bytes.size();
  post.copy.assign(bytes.begin(), bytes.end());
  enqueue(*link, std::move(post));
  link->counters.messages++;
  return Posted::ok;
}

Status TcpWorker::poll(std::vector<Event>& events) {
  const auto ready = poller_.look();
  if (!ready) return pass(ready);
  for (const Poller::Ready& one : *ready) handle(one);
  ring_alarms();
  flush();
  events_.hand_over(events);
  return {};
}

void TcpWorker::handle(const Poller::Ready& ready) {
  if (is_listeners(ready.tag)) return accept_strangers(listener(ready.tag).acceptor);
  // A link may have gone since the kernel reported it.
  if (TcpLink* link = find(static_cast<EndpointId>(ready.tag))) handle(*link, ready.events);
}

void TcpWorker::accept_strangers(Acceptor& acceptor) {
  std::string trouble;
  for (Fd& socket : acceptor.accept(poller_, &trouble)) {
    tune_tcp(socket.get(), options_);
    TcpLink& link = add_link(State::expecting, std::move(socket));
    link.where = peer_text(link.socket.get());
    if (const auto watched = watch(link, EPOLLIN); !watched) trouble = watched.error().text;
  }
  if (!trouble.empty()) log_.warn("tcp: {}", trouble);
}

void TcpWorker::handle(TcpLink& link, uint32_t events) {
  Status step;
  switch (link.state) {
    case State::connecting:
      step = greet(link);
      break;
    case State::expecting:
      step = welcome(link);
      break;
    case State::greeting:
      step = be_welcomed(link);
      break;
    case State::ready:
      if (events & EPOLLOUT) {
        poller_.change(link.socket.get(), EPOLLIN, tag_of(link.id));
        link.blocked = false;
        if (!std::exchange(link.dirty, true)) dirty_.push_back(link.id);
      }
      if (events & ~static_cast<uint32_t>(EPOLLOUT)) move_in(link);
      break;
    case State::failed:
      break;
  }
  if (!step) fail_link(link, step.error().text);
}

Status TcpWorker::greet(TcpLink& link) {
  if (const auto stands = dialled(link.socket.get()); !stands) return stands;
  poller_.change(link.socket.get(), EPOLLIN, tag_of(link.id));
  link.state = State::greeting;
  return link.say(wire::bytes_of(link.hello));
}

Status TcpWorker::welcome(TcpLink& link) {
  const auto heard = link.hear_hello(nonce_);
  wire::Welcome answer;
  answer.accepted = heard.has_value();
  if (!heard) {
    // One of our kind is told why before it is turned away.
    if (link.heard == sizeof link.hello) [[maybe_unused]]
      const auto told = link.say(wire::bytes_of(answer));
    return pass(heard);
  }
  if (!*heard) return {};
  if (const auto said = link.say(wire::bytes_of(answer)); !said) return said;
  link.peer = link.hello.from;
  become_ready(link);
  events_.accepted(link.id, std::span(link.hello.hello).first(link.hello.hello_bytes));
  return {};
}

Status TcpWorker::be_welcomed(TcpLink& link) {
  const auto heard = link.hear_welcome();
  if (!heard) return pass(heard);
  if (!*heard) return {};
  become_ready(link);
  events_.connected(link.id);
  return {};
}

void TcpWorker::become_ready(TcpLink& link) {
  poller_.cancel_alarm(tag_of(link.id));
  link.state = State::ready;
}

void TcpWorker::move_in(TcpLink& link) {
  const auto received = link.in.receive(link.socket.get(), kBudget, regions_, link.id, events_);
  if (!received)
    fail_link(link, received.error().text);
  else if (*received == TcpReceiver::Received::ended)
    fail_link(link, link.in.farewell());
}

void TcpWorker::move_out(TcpLink& link) {
  const size_t queued = link.out.size();
  const auto flushed = link.out.flush(link.socket.get(), kBudget, link.id, events_);
  if (link.out.size() < queued) retry_.worthwhile();
  if (!flushed) {
    // What the peer said before it left explains more than our broken pipe.
    move_in(link);
    if (link.state != State::failed) fail_link(link, flushed.error().text);
    return;
  }
  link.dirty = *flushed == TcpSender::Flushed::budget;
  link.blocked = *flushed == TcpSender::Flushed::blocked;
  if (link.blocked) poller_.change(link.socket.get(), EPOLLIN | EPOLLOUT, tag_of(link.id));
}

void TcpWorker::flush() {
  std::vector<EndpointId> now;
  now.swap(dirty_);
  for (const EndpointId id : now) {
    TcpLink* link = find(id);
    if (!link || link->state != State::ready) continue;
    move_out(*link);
    if (link->dirty) dirty_.push_back(id);
  }
}

void TcpWorker::ring_alarms() {
  for (const Poller::Tag tag : poller_.ring_alarms()) {
    if (is_listeners(tag))
      listener(tag).acceptor.resume(poller_);
    else if (TcpLink* link = find(static_cast<EndpointId>(tag)))
      fail_link(*link,
                fmt::format("no handshake within {}", duration_text(options_.handshake_timeout)));
  }
}

void TcpWorker::fail_link(TcpLink& link, std::string_view why) {
  const State state = std::exchange(link.state, State::failed);
  if (state == State::failed) return;
  if (state == State::ready) link.out.farewell(link.socket.get(), why);
  disconnect(link);
  if (state == State::expecting) {
    log_.debug("tcp: {} was turned away: {}", link.where, why);
    links_.erase(link.id);
    return;
  }
  events_.failed(link.id, fmt::format("{}: {}", link.where, why));
}

void TcpWorker::disconnect(TcpLink& link) {
  if (!link.socket) return;
  poller_.cancel_alarm(tag_of(link.id));
  poller_.remove(link.socket.get());
  link.socket.reset();
  link.out = TcpSender();
  link.dirty = false;
}

Posted TcpWorker::fence(EndpointId endpoint) {
  TcpLink* link = find(endpoint);
  if (!link) return Posted::error;
  // We alone write our memory, so to stop reading is enough.
  if (link->state == State::ready) link->out.farewell(link->socket.get(), "fenced");
  link->state = State::failed;
  disconnect(*link);
  events_.forget(endpoint);
  return Posted::ok;
}

void TcpWorker::close(EndpointId endpoint) {
  TcpLink* link = find(endpoint);
  if (!link) return;
  if (link->state == State::ready) {
    Events unheard;
    [[maybe_unused]] const auto flushed =
        link->out.flush(link->socket.get(), kBudget, endpoint, unheard);
    link->out.farewell(link->socket.get(), "");
    discard_input(link->socket.get());
  }
  disconnect(*link);
  links_.erase(endpoint);
  events_.forget(endpoint);
}

EndpointCounters TcpWorker::counters(EndpointId endpoint) const {
  const auto it = links_.find(endpoint);
  return it == links_.end() ? EndpointCounters{} : it->second.counters;
}

}  // namespace

Result<std::unique_ptr<Worker>> make_tcp_worker(const TransportOptions& options, const Log& log) {
  if (const auto sane = check(options); !sane) return pass(sane);
  const auto devices = tcp_devices(options.interfaces);
  if (!devices) return pass(devices);
  auto poller = Poller::create();
  if (!poller) return pass(poller);
  return std::make_unique<TcpWorker>(options, *devices, log, std::move(*poller));
}

}  // namespace crosstie
