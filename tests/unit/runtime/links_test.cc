// SPDX-License-Identifier: Apache-2.0
// What is known of a peer that has left, over a transport whose events the test makes.
#include "runtime/links.h"

#include <criterion/criterion.h>

#include "runtime/engine.h"

using namespace crosstie;

namespace {

class FakeWorker final : public Worker {
 public:
  std::vector<Event> coming;
  bool up = true;
  std::optional<Error> refuses;
  uint32_t endpoints = 0, regions = 0;
  Device device{"fake0", ""};

  std::string_view transport() const override { return "fake"; }
  std::span<const Device> devices() const override { return std::span(&device, 1); }
  Result<Blob> listen(size_t) override { return Blob(1); }
  Result<EndpointId> connect(size_t, std::span<const std::byte>, std::span<const std::byte>,
                             const Service&) override {
    if (refuses) return tl::unexpected<Error>(*refuses);
    return static_cast<EndpointId>(++endpoints);
  }
  Result<RegionId> register_memory(const MemoryView&, Access) override {
    return static_cast<RegionId>(++regions);
  }
  Posted deregister(RegionId) override { return Posted::ok; }
  Blob key(RegionId) const override { return Blob(1); }
  Posted put(EndpointId, Source source, std::span<const std::byte>, uint64_t,
             std::optional<uint32_t>, uint64_t) override {
    if (up && source.bytes > 0) event(Event::Kind::put_done, 1);
    return up ? Posted::ok : Posted::error;
  }
  Posted message(EndpointId, std::span<const std::byte>) override { return Posted::ok; }
  Status poll(std::vector<Event>& events) override {
    for (Event& one : coming) events.push_back(std::move(one));
    coming.clear();
    return {};
  }
  int fd() const override { return -1; }
  bool arm() override { return true; }
  Posted fence(EndpointId) override { return Posted::ok; }
  void close(EndpointId) override {}
  EndpointCounters counters(EndpointId) const override { return {}; }

  Event& event(Event::Kind kind, uint32_t endpoint) {
    coming.emplace_back();
    coming.back().kind = kind;
    coming.back().endpoint = static_cast<EndpointId>(endpoint);
    return coming.back();
  }
};

// Rank 0 of two on two hosts, amid a ring AllReduce: it has put what it has to.
struct Rank {
  FakeWorker* worker = new FakeWorker;
  Links links;
  Team team;
  Schedule schedule;
  Engine engine{0};
  std::vector<std::byte> in = std::vector<std::byte>(4096), out = in;
  static constexpr uint32_t kOutgoing = 1, kIncoming = 77;

  static Links make_links(FakeWorker* worker) {
    auto links = Links::make(2, {}, {std::unique_ptr<Worker>(worker), 0, {}},
                             std::move(*Buffer::allocate(1 << 16, "scratch")));
    return std::move(*links);
  }
  static Team make_team() {
    RankFacts a, b;
    a.host = "a", b.host = "b";
    return *Team::make(0, {pack(a), pack(b)});
  }
  Rank()
      : links(make_links(worker)),
        team(make_team()),
        schedule(*make_schedule(Collective::all_reduce, Algorithm::ring, team.shape())) {}

  void begin() {
    cr_assert(links.open(team, {1}).has_value());
    Event& greeting = worker->event(Event::Kind::message, kOutgoing);
    greeting.bytes.assign(1 + sizeof(uint64_t) + 1, std::byte{0});
    greeting.bytes[0] = std::byte{1};
    poll();
    const auto pieces = cut(schedule.frame(), 1024, 4, 1 << 20, links.scratch().size());
    cr_assert(pieces.has_value());
    cr_assert(links.attach({in, out}).has_value());
    auto program = std::make_shared<const Program>(schedule.program(0));
    cr_assert(engine
                  .start({1, program, schedule.frame(), *pieces, DataType::f32, 0, in.data(),
                          out.data(), links.scratch()})
                  .has_value());
    while (engine.advance(links)) poll();
  }
  void accept() {
    const int rank = 1;
    const auto hello = std::as_bytes(std::span(&rank, 1));
    worker->event(Event::Kind::accepted, kIncoming).bytes.assign(hello.begin(), hello.end());
    poll();
  }
  void poll() {
    cr_assert(links.poll({[](int, uint32_t) {}, [this] { engine.put_done(); }, {}}).has_value());
  }
  bool waits_for_peer() const {
    return engine.waits_for(Engine::flags_raised(schedule.program(1), 0));
  }
};

}  // namespace

Test(links, a_rank_is_heard_until_its_own_link_fails_whatever_becomes_of_ours_to_it) {
  Rank rank;
  rank.begin();
  cr_assert_not(rank.links.hears(1));
  rank.accept();
  rank.worker->event(Event::Kind::failed, Rank::kOutgoing).why = "closed by peer";
  rank.poll();
  cr_assert(rank.links.lost().contains(1) && rank.links.hears(1));
  Event& reset = rank.worker->event(Event::Kind::failed, Rank::kIncoming);
  reset.why = "reset", reset.died = true;
  rank.poll();
  cr_assert_not(rank.links.hears(1));
  cr_assert(rank.links.lost().at(1).why == "closed by peer" && rank.links.lost().at(1).died);
}

Test(engine, it_knows_whether_a_lane_waits_for_what_a_peer_puts) {
  Rank rank;
  rank.begin();
  cr_assert(rank.waits_for_peer());
  cr_assert_not(rank.engine.waits_for({}));
  cr_assert_not(rank.engine.waits_for(Engine::flags_raised(rank.schedule.program(1), 5)));
}

Test(links, signals_to_a_rank_that_needs_nothing_more_are_dropped_and_hold_nothing_up) {
  Rank rank;
  rank.begin();
  rank.worker->up = false;
  const auto signal = [&] { return rank.links.put(1, Space::scratch, 0, 0, 0, 3, 1); };
  cr_assert(signal() == Posted::error);
  rank.links.retire(1);
  cr_assert(signal() == Posted::ok);
}

Test(links, a_connect_that_fails_for_want_of_descriptors_is_no_fault_of_the_peers) {
  Rank rank;
  rank.worker->refuses = Error{Code::exhausted, "too many open files"};
  const auto opened = rank.links.open(rank.team, {1});
  cr_assert_not(opened.has_value());
  cr_assert(opened.error().code == Code::exhausted && opened.error().rank < 0);
  cr_assert(rank.links.lost().empty());
  rank.worker->refuses = Error{Code::peer, "connection refused"};
  cr_assert(rank.links.open(rank.team, {1}).has_value());
  cr_assert(rank.links.lost().contains(1));
}
