// SPDX-License-Identifier: Apache-2.0
#include "runtime/communicator.h"

#include <poll.h>

#include "base/digest.h"
#include "base/identity.h"
#include "choice/choose.h"
#include "config.h"
#include "transport/shm.h"
#include "transport/tcp.h"

namespace crosstie {
namespace {

using namespace std::chrono_literals;

// The library thread leaves a communicator alone that the application drives itself; so soon it
// looks again whether that is still so.
constexpr auto kLookAgain = 20ms;
// A waiter looks so often whether anybody is late.
constexpr auto kLookForLate = 250ms;
// After an endpoint has failed, rank 0 gets so long to say who it was that died or left.
constexpr auto kVerdictGrace = 2s;
// How long one that leaves stays for its peers, and until its goodbye is sent.
constexpr Clock::duration kSettle = 800ms, kStay = 1s;
constexpr auto kSlice = 5ms;
// So long the library thread may take to tell the others why we failed; then we return, and may
// end.
constexpr auto kTell = 200ms;

// What all ranks must have set alike.
std::string common_settings(const RuntimeOptions& options) {
  return fmt::format(
      "CROSSTIE_SCRATCH={} CROSSTIE_CHUNK={} CROSSTIE_HEALTH_TIMEOUT={} CROSSTIE_CHECK={:d}",
      bytes_text(options.scratch.count), bytes_text(options.chunk.count),
      duration_text(options.health_timeout), options.check);
}

// What all ranks must ask for alike, in as many bits as a notification has room for: of 256
// different calls one is mistaken for the same.
uint8_t digest_of(const AllReduceCall& call, Algorithm algorithm) {
  const uint64_t digest = Digest().add(call.count).add(call.type).add(algorithm).value();
  return static_cast<uint8_t>(std::max<uint64_t>(1, (digest ^ digest >> 32 ^ digest >> 48) & 0xff));
}
// Of those that are compared in full beforehand.
constexpr uint8_t kCompared = 0;

// The same for people.
std::string declaration_of(const AllReduceCall& call, Algorithm algorithm, bool compares) {
  return fmt::format("all_reduce of {} {} by {} for class {}, check {:d}", call.count,
                     name(call.type), name(algorithm), name(call.traffic_class), compares);
}

struct Carriers {
  Links::Carrier inside, across;
};

// The device with this address; the first, which is the most wanted, where none has.
size_t device_at(const std::string& address, std::span<const Device> devices) {
  const auto found = std::ranges::find(devices, address, &Device::address);
  return found == devices.end() ? 0 : static_cast<size_t>(found - devices.begin());
}

Service service_of(const TransportOptions& transport) {
  if (transport.traffic_class < 0) return {};
  return {static_cast<uint8_t>(transport.traffic_class)};
}

// Before the ranks meet, so that what cannot work here keeps nobody waiting.
Result<Carriers> make_carriers(const TransportOptions& transport, const Log& log) {
  auto shm = make_shm_worker(transport, log);
  if (!shm) return pass(shm);
  auto tcp = make_tcp_worker(transport, log);
  if (!tcp) return pass(tcp);
  return Carriers{{std::move(*shm), 0, {}}, {std::move(*tcp), 0, service_of(transport)}};
}

// Listens, and tells where.
Result<std::string> make_facts(Carriers& carriers, const RuntimeOptions& options,
                               const std::string& address) {
  auto& [shm, tcp] = carriers;
  tcp.device = device_at(address, tcp.worker->devices());
  const auto inside = shm.worker->listen(shm.device);
  if (!inside) return pass(inside);
  const auto across = tcp.worker->listen(tcp.device);
  if (!across) return pass(across);
  return pack({options.host.empty() ? kernel_identity() : options.host,
               options.host.empty() ? host_name() : options.host, getpid(), PACKAGE_VERSION,
               common_settings(options), *inside, *across});
}

}  // namespace

Result<std::unique_ptr<Communicator>> Communicator::create(const Job& job,
                                                           const RuntimeOptions& options,
                                                           const TransportOptions& transport,
                                                           std::shared_ptr<Progress> progress,
                                                           Log log) {
  auto carriers = make_carriers(transport, log);
  if (!carriers) return pass(carriers);
  const auto facts = [&](const std::string& address) {
    return make_facts(*carriers, options, address);
  };
  auto met = meet(job, facts, options.join_timeout, log);
  if (!met) return pass(met);
  auto team = Team::make(job.rank, met->facts);
  if (!team) return pass(team);
  auto scratch = Buffer::allocate(options.scratch.count, "crosstie-scratch");
  if (!scratch) return pass(scratch, "CROSSTIE_SCRATCH");
  auto links = Links::make(job.ranks, std::move(carriers->inside), std::move(carriers->across),
                           std::move(*scratch));
  if (!links) return pass(links);
  auto health = Health::make(job.rank, job.ranks, std::move(met->star), options.health_timeout);
  if (!health) return pass(health);
  std::unique_ptr<Communicator> made(new Communicator(std::move(*team), std::move(*health),
                                                      std::move(*links), options,
                                                      std::move(progress), std::move(log)));
  made->progress_->add(made.get());
  made->log_.info("{} of {} on {} hosts", made->team_.name(job.rank), job.ranks,
                  made->team_.shape()->hosts().size());
  return made;
}

Communicator::Communicator(Team team, std::unique_ptr<Health> health, Links links,
                           const RuntimeOptions& options, std::shared_ptr<Progress> progress,
                           Log log)
    : options_(options),
      log_(std::move(log)),
      team_(std::move(team)),
      progress_(std::move(progress)),
      health_(std::move(health)),
      links_(std::move(links)),
      engine_(team_.rank()) {}

Communicator::~Communicator() {
  const Deadline stay(kStay);
  settle(Deadline(kSettle));
  progress_->remove(this);
  health_->leave(completed_, stay);
  links_.close_all();
}

Result<const Communicator::Prepared*> Communicator::prepare(Algorithm algorithm) {
  if (const auto known = prepared_.find(algorithm); known != prepared_.end()) return &known->second;
  auto schedule = make_schedule(Collective::all_reduce, algorithm, team_.shape());
  if (!schedule) return pass(schedule);
  auto program =
      std::make_shared<const Program>(schedule->program(static_cast<uint32_t>(team_.rank())));
  auto peers = Engine::peers(*program, team_.rank());
  return &prepared_
              .emplace(algorithm,
                       Prepared{std::move(*schedule), std::move(program), std::move(peers)})
              .first->second;
}

Algorithm Communicator::algorithm_of(const AllReduceCall& call) const {
  if (call.algorithm) return *call.algorithm;
  return choose_all_reduce(*team_.shape(), call.count * size_of(call.type)).ranked()[0].algorithm;
}

Result<Cut> Communicator::cut_for(const AllReduceCall& call, const Schedule::Frame& frame) const {
  return cut(frame, call.count, static_cast<uint32_t>(size_of(call.type)), options_.chunk.count,
             options_.scratch.count);
}

Result<Communicator::Pending> Communicator::make_pending(const AllReduceCall& call) {
  const auto prepared = prepare(algorithm_of(call));
  if (!prepared) return pass(prepared);
  const Schedule::Frame& frame = (*prepared)->schedule.frame();
  const auto element = static_cast<uint32_t>(size_of(call.type));
  const auto pieces = cut_for(call, frame);
  if (!pieces) return pass(pieces);
  const bool compares = (call.check || options_.check) && team_.ranks() > 1;
  // Puts read the input only; the links know no read-only memory.
  auto* in = static_cast<std::byte*>(const_cast<void*>(call.in));
  auto* out = static_cast<std::byte*>(call.out);
  const uint64_t bytes = call.count * element;
  return Pending{
      {posted_ + 1, (*prepared)->program, frame, *pieces, call.type,
       compares ? kCompared : digest_of(call, frame.algorithm), in, out, links_.scratch()},
      *prepared,
      {in, bytes},
      {out, bytes},
      call.timeout.value_or(options_.collective_timeout),
      std::make_shared<Request>(),
      call,
      compares};
}

Status Communicator::all_reduce(const AllReduceCall& call, std::shared_ptr<Request>& request) {
  const std::lock_guard lock(mutex_);
  if (broken_) return tl::unexpected<Error>(*broken_);
  auto pending = make_pending(call);
  if (!pending) return pass(pending);
  request = pending->request;
  request->communicator = this;
  pending_.push_back(std::move(*pending));
  health_->entered(++posted_);
  auto opened = links_.open(team_, pending_.back().prepared->peers);
  if (opened && pending_.back().compares) opened = links_.open(team_, {neighbour(1)});
  if (!opened)
    break_down(opened.error());
  else
    drive();
  return {};
}

void Communicator::hand_over() { progress_->wake(); }

// Polling has taken back the request to be woken; what goes on is the library thread's again.
bool Communicator::test(Request& request) {
  const std::lock_guard lock(mutex_);
  if (!request.done) {
    const bool more = drive();
    if (more || !links_.arm()) progress_->wake();
  }
  visits_++;
  return request.done;
}

void Communicator::wait(Request& request) {
  waiters_++;
  std::unique_lock lock(mutex_);
  while (!request.done) {
    if (drive() || request.done || !links_.arm()) continue;
    sleep(lock, Deadline(kLookForLate).sooner(Deadline(started_ + pending_.front().timeout)));
  }
  visits_++;
  waiters_--;
  if (engine_.running() && !links_.arm()) progress_->wake();
}

void Communicator::sleep(std::unique_lock<std::mutex>& lock, Deadline until) {
  std::vector<pollfd> fds = {{health_->news_fd(), POLLIN, 0}};
  for (const int fd : links_.fds()) fds.push_back({fd, POLLIN, 0});
  lock.unlock();
  poll(fds.data(), fds.size(), until.poll_ms());
  lock.lock();
  if (fds[0].revents != 0) health_->take_news();
}

// Moves on until nothing moves, or for a slice of time: what holds the lock also beats the heart
// and must look for faults. True: there is more to do at once.
bool Communicator::drive() {
  const Deadline slice(kSlice);
  bool moved = true;
  while (moved && !slice.expired()) {
    const auto polled = poll_links();
    if (!polled) {
      break_down(polled.error());
      return false;
    }
    if (!engine_.running()) start_next();
    moved = engine_.running() && agreed() && engine_.advance(links_);
    if (engine_.running() && engine_.finished()) {
      finish();
      moved = true;
    }
  }
  check();
  return moved && engine_.running();
}

Status Communicator::poll_links() {
  Status status;
  const Links::Handlers handlers = {[&](int rank, uint32_t immediate) {
                                      const auto known = engine_.notified(rank, immediate);
                                      if (!known) status = known;
                                    },
                                    [&] { engine_.put_done(); },
                                    [&](int rank, uint64_t number, std::string_view call) {
                                      if (rank == neighbour(-1)) declared_[number] = call;
                                    }};
  const auto polled = links_.poll(handlers);
  return polled ? status : polled;
}

void Communicator::start_next() {
  if (pending_.empty()) return;
  Pending& next = pending_.front();
  const auto attached = links_.attach({next.in, next.out});
  if (!attached) return break_down(attached.error());
  started_ = Clock::now();
  asked_who_is_last_ = warned_late_ = false;
  const auto begun = engine_.start(next.operation);
  if (!begun) break_down(begun.error());
}

int Communicator::neighbour(int distance) const {
  return (team_.rank() + distance + team_.ranks()) % team_.ranks();
}

// With `check` each rank tells the next one what it calls, and begins when the one before has said
// the same; so all have.
bool Communicator::agreed() {
  Pending& running = pending_.front();
  if (running.agreed) return true;
  const uint64_t number = running.operation.number;
  const auto before = declared_.find(number);
  if (!running.compares && before == declared_.end()) return true;
  const std::string ours =
      declaration_of(running.call, running.operation.frame.algorithm, running.compares);
  if (running.compares && !running.declared)
    running.declared = links_.declare(neighbour(1), number, ours) == Posted::ok;
  if (before == declared_.end()) return false;
  const std::string theirs = before->second;
  if (theirs != ours) {
    break_down(Fault{Code::peer, neighbour(-1),
                     fmt::format("calls {}, where rank {} calls {}", theirs, team_.rank(), ours)});
    return false;
  }
  return running.agreed = running.declared;
}

void Communicator::finish() {
  engine_.end();
  links_.detach();
  completed_ = pending_.front().operation.number;
  declared_.erase(completed_);
  links_.announce(completed_);
  pending_.front().request->done = true;
  pending_.pop_front();
  start_next();
}

void Communicator::check() {
  if (!engine_.running()) return;
  const auto now = Clock::now();
  if (const auto found = fault(now)) return break_down(*found);
  check_late(now);
}

// A rank that left after this collective has done its part in it and needs nothing more; only that
// its last bytes may have been lost.
std::optional<Communicator::Fault> Communicator::lost_peer(Clock::time_point now) {
  for (const auto& [rank, lost] : links_.lost()) {
    const auto left = health_->left_after(rank);
    const bool in_time = now - lost.at <= kVerdictGrace;
    if (left && *left >= pending_.front().operation.number) {
      links_.retire(rank);
      if (in_time || !needs_more_of(rank)) continue;
      return Fault{Code::peer, rank,
                   "has left the job, and the last that it sent is lost: " + lost.why};
    }
    if (left) return Fault{Code::peer, rank, "has left the job"};
    if (lost.died) return Fault{Code::peer, rank, "is dead: " + lost.why};
    if (!in_time) return Fault{Code::peer, rank, "is not reached any more: " + lost.why};
  }
  return std::nullopt;
}

// Waits for what that rank puts, though no put of its can arrive any more.
bool Communicator::needs_more_of(int rank) const {
  if (links_.hears(rank)) return false;
  const Program theirs = pending_.front().prepared->schedule.program(static_cast<uint32_t>(rank));
  return engine_.waits_for(Engine::flags_raised(theirs, team_.rank()));
}

std::optional<Communicator::Fault> Communicator::fault(Clock::time_point now) {
  // Asked before the verdict: a verdict precedes the leaving of those who pass it on.
  auto found = lost_peer(now);
  if (const auto verdict = health_->verdict())
    return Fault{Code::peer, verdict->rank, verdict->why};
  if (found) return found;
  const Pending& running = pending_.front();
  if (now - started_ < running.timeout) return std::nullopt;
  const auto number = running.operation.number;
  const auto limit = duration_text(std::chrono::nanoseconds(running.timeout));
  const auto last = health_->last();
  if (last && last->entered < number)
    return Fault{Code::timeout, last->rank,
                 fmt::format("has not begun collective {} within {}", number, limit)};
  return Fault{
      Code::timeout, team_.rank(),
      fmt::format("gave up: collective {} has not ended within {}, though all ranks have begun it",
                  number, limit)};
}

void Communicator::check_late(Clock::time_point now) {
  if (now - started_ < kLookForLate) return;
  if (!std::exchange(asked_who_is_last_, true)) {
    health_->hurry();
    progress_->wake();
  }
  if (warned_late_ || now - started_ < options_.late_warning) return;
  const auto last = health_->last();
  const uint64_t number = pending_.front().operation.number;
  if (!last || last->entered >= number || last->rank == team_.rank()) return;
  warned_late_ = true;
  log_.warn("{} is alive but has not begun collective {}, for which this rank has waited {}",
            team_.name(last->rank), number,
            duration_text(std::chrono::duration_cast<std::chrono::milliseconds>(now - started_)));
}

void Communicator::break_down(const Error& error) {
  const bool of_another = error.rank >= 0;
  break_down({error.code, of_another ? error.rank : team_.rank(),
              of_another ? error.text : "failed: " + error.text});
}

// Closes the endpoints first, so that nothing of ours reads the callers' memory any more.
void Communicator::break_down(const Fault& fault) {
  health_->accuse({fault.rank, fault.why});
  progress_->wake();
  links_.close_all();
  engine_.end();
  const Error error{fault.code, fmt::format("{} {}", team_.name(fault.rank), fault.why),
                    fault.rank};
  for (Pending& pending : pending_) {
    pending.request->status = tl::unexpected<Error>(error);
    pending.request->done = true;
  }
  pending_.clear();
  broken_ = error;
  if (progress_->is_own_thread())
    health_->beat();
  else
    health_->wait_until_told(Deadline(kTell));
}

void Communicator::settle(Deadline deadline) {
  const auto served = [this](int rank, uint64_t completed) {
    return completed >= posted_ || health_->left_after(rank);
  };
  waiters_++;
  std::unique_lock lock(mutex_);
  while (!broken_ && !health_->verdict() && !deadline.expired()) {
    if (!poll_links() || links_.all_peers(served)) return;
    if (links_.arm()) sleep(lock, deadline);
  }
}

LinkTraffic Communicator::traffic() {
  const std::lock_guard lock(mutex_);
  return links_.traffic();
}

Result<Communicator::Forecast> Communicator::forecast(const AllReduceCall& call) {
  const std::lock_guard lock(mutex_);
  Forecast forecast{algorithm_of(call), {}};
  const auto prepared = prepare(forecast.algorithm);
  if (!prepared) return pass(prepared);
  const Schedule& schedule = (*prepared)->schedule;
  const auto element = static_cast<uint32_t>(size_of(call.type));
  const auto pieces = cut_for(call, schedule.frame());
  if (!pieces) return pass(pieces);
  for (uint32_t rank = 0; rank < team_.shape()->ranks(); rank++) {
    const Traffic own = crosstie::traffic(schedule, *team_.shape(), rank, pieces->slicer, element);
    forecast.traffic.inside_bytes += own.inside_bytes;
    forecast.traffic.across_bytes += own.across_bytes;
  }
  return forecast;
}

Deadline Communicator::tend(std::vector<pollfd>& fds) {
  const Deadline beat = health_->beat();
  fds.push_back({health_->fd(), POLLIN, 0});
  const uint64_t visits = visits_;
  const bool visited = std::exchange(visits_seen_, visits) != visits;
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (waiters_ > 0 || !lock || (visited && pending_.empty()))
    return beat.sooner(Deadline(kLookAgain));
  if (drive() || !links_.arm()) return Deadline(0ms);
  for (const int fd : links_.fds()) fds.push_back({fd, POLLIN, 0});
  return engine_.running() ? beat.sooner(Deadline(kLookForLate)) : beat;
}

}  // namespace crosstie
