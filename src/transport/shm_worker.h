// SPDX-License-Identifier: Apache-2.0
// The Worker over shared memory: shm.cc moves bytes and ends, shm_meeting.cc meets peers,
// shm_regions.cc keeps them informed of the memory that is open to them.
#pragma once
#include <atomic>
#include <set>

#include "base/log.h"
#include "transport/events.h"
#include "transport/options.h"
#include "transport/poller.h"
#include "transport/shm_link.h"
#include "transport/wire/key.h"

namespace crosstie {

class ShmWorker final : public Worker {
 public:
  // When to try again what the kernel had no room for.
  static constexpr auto kRetry = std::chrono::milliseconds(10);
  // Endpoints' tags are their ids.
  static constexpr Poller::Tag kListenerTag = Poller::Tag{1} << 32;
  static constexpr Poller::Tag kBellTag = kListenerTag + 1;
  // With the endpoint's id: that the peer's process has ended.
  static constexpr Poller::Tag kProcessTags = Poller::Tag{1} << 33;
  static Poller::Tag tag_of(EndpointId id) { return static_cast<Poller::Tag>(id); }

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
  ShmLink& add_link(ShmLink::State state);
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
  void tell_gone(ShmLink& link, RegionId id);
  void tell(ShmLink& link, const wire::Packet& packet);
  void tell_waiting(ShmLink& link);
  Result<Sent> send(ShmLink& link, const wire::Packet& packet);

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

}  // namespace crosstie
