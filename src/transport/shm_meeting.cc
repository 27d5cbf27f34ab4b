// SPDX-License-Identifier: Apache-2.0
// How peers of a host meet over a socket, and what they say there later.
#include <unistd.h>

#include "transport/shm_worker.h"

namespace crosstie {
namespace {

constexpr int kPacketsPerPoll = 64;
constexpr const char* kGone = "the peer's process is gone";

}  // namespace

using State = ShmLink::State;
using wire::Packet;

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
  // Of regions that came and went before, the last stands for all: the peer waits for none of them.
  const RegionId last = regions_.last();
  tell_new_regions(link);
  if (last > link.last_told) tell_gone(link, last);
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

}  // namespace crosstie
