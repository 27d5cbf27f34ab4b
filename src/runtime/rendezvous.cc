// SPDX-License-Identifier: Apache-2.0
#include "runtime/rendezvous.h"

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <set>
#include <thread>

#include "base/identity.h"
#include "runtime/fields.h"
#include "transport/poller.h"

namespace crosstie {
namespace {

using namespace std::chrono_literals;

enum Type : uint8_t {
  kHello = 'H',    // member: who it is
  kWelcome = 'W',  // rank 0: that is one of us
  kReject = 'R',   // rank 0: in words, why it is none
  kFacts = 'F',    // member
  kTable = 'T',    // rank 0: everybody's facts
  kGiveUp = 'G',   // rank 0, in place of the table: in words, why the meeting comes to nothing
};
// The first thing a member says. Never changes, so that versions can tell each other apart.
constexpr std::string_view kMagic = "crosstie-rendezvous-1";
// The one refusal after which a member looks on at the next port.
constexpr std::string_view kOtherJob = "another job meets here";
constexpr size_t kMostHello = 64 << 10;
constexpr size_t kMostTable = 256 << 20;
// A connection that has not said who it is by then is a stray.
constexpr auto kHelloTimeout = 10s;
constexpr auto kWelcomeTimeout = 5s;
// So soon a rank 0 answers another one that finds the port taken.
constexpr auto kTakenTimeout = 500ms;
// Descriptors of a process beside the connections of its star; a guess on the safe side.
constexpr rlim_t kOtherDescriptors = 256;

struct Hello {
  uint64_t job = 0;
  int rank = -1, ranks = -1;
  std::string process = "a process";
};

std::string process_text(int pid, std::string_view host) {
  return fmt::format("process {} on host {}", pid, host);
}

std::string text_of(const Job& job) {
  return fmt::format("{} {} {} {} {} {}", kMagic, job.id, job.rank, job.ranks, getpid(),
                     host_name());
}

std::optional<Hello> parse_hello(const std::string& text) {
  Hello hello;
  int pid = 0;
  char host[256] = "";
  if (!text.starts_with(kMagic)) return std::nullopt;
  const char* rest = text.c_str() + kMagic.size();
  const int read = std::sscanf(rest, " %" SCNu64 " %d %d %d %255s", &hello.job, &hello.rank,
                               &hello.ranks, &pid, host);
  if (read < 3) return std::nullopt;
  if (read == 5) hello.process = process_text(pid, host);
  return hello;
}

// Of each rank's facts only what differs from the rank's before it: ranks have much alike.
std::string pack_table(const std::vector<std::string>& facts) {
  std::string table;
  std::string_view before;
  for (const std::string& own : facts) {
    const auto differs = std::mismatch(own.begin(), own.end(), before.begin(), before.end()).first;
    const auto alike = static_cast<size_t>(differs - own.begin());
    add_number(table, static_cast<uint32_t>(alike));
    add_text(table, std::string_view(own).substr(alike));
    before = own;
  }
  return table;
}

std::optional<std::vector<std::string>> unpack_table(std::string_view table, int ranks) {
  std::vector<std::string> facts;
  facts.reserve(static_cast<size_t>(ranks));  // so that none moves while the next looks at it
  std::string_view before;
  for (int rank = 0; rank < ranks; rank++) {
    const auto alike = take_number(table);
    const auto rest = take_text(table);
    if (!alike || !rest || *alike > before.size()) return std::nullopt;
    std::string own(before.substr(0, *alike));
    own += *rest;
    before = facts.emplace_back(std::move(own));
  }
  return table.empty() ? std::optional(std::move(facts)) : std::nullopt;
}

// A loopback address says something only where the whole job meets there: a host's own name often
// resolves to 127.0.1.1.
std::string telling(const Job& job, const std::string& address) {
  return is_loopback(address) && !is_loopback(job.address) ? "" : address;
}

// "3, 5-7" of what is absent.
std::string ranges(const std::vector<Channel>& spokes) {
  std::string text;
  for (size_t first = 1; first < spokes.size(); first++) {
    if (spokes[first]) continue;
    size_t last = first;
    while (last + 1 < spokes.size() && !spokes[last + 1]) last++;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", first);
    if (last > first) text += fmt::format("-{}", last);
    first = last;
  }
  return text;
}

// Rank 0 holds a connection to everyone. NCCL's bootstrap, too, raises the soft limit of open files
// to the hard one; we do so only where the ranks would not fit.
void make_room(int ranks, const Log& log) {
  rlimit limit{};
  const rlim_t needed = static_cast<rlim_t>(ranks) + kOtherDescriptors;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return;
  const rlim_t before = std::exchange(limit.rlim_cur, limit.rlim_max);
  if (before != limit.rlim_max && setrlimit(RLIMIT_NOFILE, &limit) == 0)
    log.info("rendezvous: raised this process's limit of open files from {} to {} to meet {} ranks",
             before, limit.rlim_max, ranks);
}

// Says hello at a port of the job's. Code::invalid: rank 0 is there and does not want us.
Result<Channel> knock(const Job& job, uint16_t port, Deadline deadline) {
  auto channel = connect_channel(job.address, port, deadline, kMostTable);
  if (!channel) return channel;
  const auto sent = channel->send(kHello, text_of(job));
  if (!sent) return pass(sent);
  const auto answer = channel->receive(deadline);
  if (!answer) return pass(answer);
  if (answer->type == kReject && answer->payload != kOtherJob)
    return fail(Code::invalid, "rank 0 at {} says: {}", place(job.address, port), answer->payload);
  if (answer->type != kWelcome)
    return fail(Code::peer, "port {} is another job's or program's", port);
  return channel;
}

// Rank 0's side. What a turn costs depends on those who have something to say, not on all.
class Host {
 public:
  Host(const Job& job, Deadline deadline, const Log& log, Poller poller)
      : job_(job), deadline_(deadline), log_(log), poller_(std::move(poller)) {
    met_.facts.resize(static_cast<size_t>(job.ranks));
    met_.star.spokes.resize(static_cast<size_t>(job.ranks));
    processes_.resize(static_cast<size_t>(job.ranks));
    processes_[0] = process_text(getpid(), host_name());
  }

  Result<Met> run(const MakeFacts& make_facts) {
    make_room(job_.ranks, log_);
    const auto listening = listen();
    if (!listening) return pass(listening);
    while (missing_ > 0) {
      const auto turned = turn();
      if (!turned) return give_up(turned.error());
    }
    acceptor_.stop(poller_);  // before the table: a rank that has it may meet again here
    while (!guests_.empty()) drop(guests_.begin()->first);
    auto own = make_facts(telling(job_, address_));
    if (!own) return give_up(own.error());
    met_.facts[0] = std::move(*own);
    const auto sent = send_table();
    if (!sent) return give_up(sent.error());
    return std::move(met_);
  }

 private:
  // Guests have the tags behind it, in the order in which they came.
  static constexpr Poller::Tag kListenerTag = 0;

  struct Guest {
    Channel channel;
    Deadline patience;
    int rank = -1;  // once it has said so
    std::string process;
  };

  Status listen() {
    Status last;
    for (uint16_t i = 0; i < Job::kPorts; i++) {
      const auto port = static_cast<uint16_t>(job_.port + i);
      auto fd = listen_on(job_.address, port);
      if (fd) return acceptor_.start(poller_, std::move(*fd));
      last = pass(fd);
      // It may be another rank 0 of this very job.
      const auto welcomed = knock(job_, port, Deadline(kTakenTimeout).sooner(deadline_));
      if (!welcomed && welcomed.error().code == Code::invalid) return pass(welcomed);
    }
    return fail(last.error().code, "none of the {} ports from {} is free: {}", Job::kPorts,
                place(job_.address, job_.port), last.error().text);
  }

  // What is ready by then.
  Result<std::span<const Poller::Ready>> look(Deadline until) {
    pollfd item{poller_.fd(), POLLIN, 0};
    if (poll(&item, 1, until.poll_ms()) < 0 && errno != EINTR) return fail_errno(Code::io, "poll");
    return poller_.look();
  }

  Status turn() {
    if (deadline_.expired())
      return fail(Code::timeout, "ranks {} of {} have not come to {}", ranges(met_.star.spokes),
                  job_.ranks, place(job_.address, job_.port));
    const auto oldest = silent_.begin();
    const auto ready =
        look(oldest == silent_.end() ? deadline_ : deadline_.sooner(guests_.at(*oldest).patience));
    if (!ready) return pass(ready);
    for (const Poller::Ready& one : *ready) {
      if (one.tag == kListenerTag) {
        const auto accepted = accept_some();
        if (!accepted) return accepted;
      } else if (!serve(one.tag, guests_.at(one.tag))) {
        drop(one.tag);
      }
    }
    while (!silent_.empty() && guests_.at(*silent_.begin()).patience.expired())
      drop(*silent_.begin());
    return {};
  }

  Status accept_some() {
    std::string trouble;
    for (Fd& fd : acceptor_.accept(poller_, &trouble)) {
      const Poller::Tag tag = ++last_guest_;
      const auto added = poller_.add(fd.get(), EPOLLIN, tag);
      if (!added) return added;
      guests_.emplace(tag,
                      Guest{Channel(std::move(fd), kMostHello), Deadline(kHelloTimeout), -1, {}});
      silent_.insert(tag);
    }
    if (trouble.empty()) return {};
    // Those who have said nothing make room for those to come.
    if (!silent_.empty()) {
      log_.warn("rendezvous: {}; dropped the oldest of {} connections that say nothing", trouble,
                silent_.size());
      drop(*silent_.begin());
      return {};
    }
    return fail(Code::exhausted, "rank 0 cannot hold {} connections (see ulimit -n): {}",
                job_.ranks - 1, trouble);
  }

  void drop(Poller::Tag tag) {
    silent_.erase(tag);
    const auto guest = guests_.find(tag);
    if (guest->second.channel) poller_.remove(guest->second.channel.fd());
    guests_.erase(guest);
  }

  // False: this guest is to be forgotten.
  bool serve(Poller::Tag tag, Guest& guest) {
    for (;;) {
      auto frame = guest.channel.receive();
      if (!frame) {
        log_.debug("rendezvous: dropped a connection: {}", frame.error().text);
        return false;
      }
      if (!*frame) return true;
      if ((*frame)->type == kHello && guest.rank < 0) {
        if (!welcome(guest, (*frame)->payload)) return false;
        silent_.erase(tag);
      } else {
        if ((*frame)->type == kFacts && guest.rank >= 0) admit(guest, std::move((*frame)->payload));
        return false;
      }
    }
  }

  bool welcome(Guest& guest, const std::string& text) {
    const auto hello = parse_hello(text);
    if (!hello) return false;
    const std::string why = refusal(*hello);
    if (!why.empty()) return turn_away(guest, hello->process, why);
    guest.rank = hello->rank;
    guest.process = hello->process;
    return static_cast<bool>(guest.channel.send(kWelcome, ""));
  }

  bool turn_away(Guest& guest, const std::string& process, const std::string& why) {
    log_.warn("rendezvous: turned {} away: {}", process, why);
    static_cast<void>(guest.channel.send(kReject, why));
    return false;
  }

  // Empty: it is one of us.
  std::string refusal(const Hello& hello) const {
    if (hello.job != job_.id) return std::string(kOtherJob);
    if (hello.ranks != job_.ranks)
      return fmt::format("rank {} believes in {} ranks, rank 0 in {}", hello.rank, hello.ranks,
                         job_.ranks);
    if (hello.rank < 0 || hello.rank >= job_.ranks)
      return fmt::format("there is no rank {}", hello.rank);
    const std::string& holder = processes_[static_cast<size_t>(hello.rank)];
    return holder.empty() ? "" : fmt::format("rank {} is {} already", hello.rank, holder);
  }

  void admit(Guest& guest, std::string facts) {
    const auto rank = static_cast<size_t>(guest.rank);
    std::string& holder = processes_[rank];
    if (!holder.empty()) {  // two came with one rank: the first is in
      turn_away(guest, guest.process, fmt::format("rank {} is {} already", rank, holder));
      return;
    }
    holder = std::move(guest.process);
    note_address(guest.channel.local_address());
    poller_.remove(guest.channel.fd());
    met_.facts[rank] = std::move(facts);
    met_.star.spokes[rank] = std::move(guest.channel);
    missing_--;
  }

  // Where others reach us. One that came by loopback says nothing of how the rest do.
  void note_address(const std::string& address) {
    if (address_.empty() || !is_loopback(address)) address_ = address;
  }

  // One table, from which each spoke is served as fast as it takes it.
  Status send_table() {
    const Packed table = pack(kTable, pack_table(met_.facts));
    size_t unsent = 0;
    for (size_t rank = 1; rank < met_.star.spokes.size(); rank++) {
      Channel& spoke = met_.star.spokes[rank];
      // Of one that has gone its health will tell.
      if (!spoke.send(table) || !spoke.has_unsent()) continue;
      const auto added = poller_.add(spoke.fd(), EPOLLOUT, rank);
      if (!added) return added;
      unsent++;
    }
    while (unsent > 0) {
      if (deadline_.expired()) return fail(Code::timeout, "a rank does not take the job's facts");
      const auto ready = look(deadline_);
      if (!ready) return pass(ready);
      for (const Poller::Ready& one : *ready) unsent -= is_served(met_.star.spokes[one.tag]);
    }
    return {};
  }

  bool is_served(Channel& spoke) {
    if (spoke.flush() && spoke.has_unsent()) return false;
    poller_.remove(spoke.fd());
    return true;
  }

  // Those who have come learn why it comes to nothing.
  Result<Met> give_up(const Error& error) {
    const Packed words = pack(kGiveUp, error.text);
    for (Channel& spoke : met_.star.spokes)
      if (spoke) static_cast<void>(spoke.send(words));
    return tl::unexpected<Error>(error);
  }

  const Job& job_;
  Deadline deadline_;
  const Log& log_;
  Poller poller_;
  Met met_;
  Acceptor acceptor_{kListenerTag};
  std::map<Poller::Tag, Guest> guests_;
  std::set<Poller::Tag> silent_;  // those that have not said who they are
  Poller::Tag last_guest_ = kListenerTag;
  std::vector<std::string> processes_;  // by rank; empty: has not come
  std::string address_;
  int missing_ = job_.ranks - 1;
};

// The other ranks' side.
class Member {
 public:
  Member(const Job& job, Deadline deadline) : job_(job), deadline_(deadline) {}

  Result<Met> run(const MakeFacts& make_facts) {
    auto hub = find_host();
    if (!hub) return pass(hub);
    auto own = make_facts(telling(job_, hub->local_address()));
    if (!own) return pass(own);
    const auto sent = hub->send(kFacts, *own);
    if (!sent) return pass(sent, "rank 0");
    // Rank 0 gives up first and says why; the margin is for its words to arrive.
    auto table = hub->receive(Deadline(deadline_.at() + 5s));
    if (!table) return pass(table, "rank 0");
    if (table->type == kReject) return fail(Code::invalid, "rank 0 says: {}", table->payload);
    if (table->type != kTable) return fail(Code::timeout, "{}", table->payload);
    auto facts = unpack_table(table->payload, job_.ranks);
    if (!facts) return fail(Code::peer, "rank 0 sent no table of {} ranks", job_.ranks);
    return Met{std::move(*facts), {{}, std::move(*hub)}};
  }

 private:
  Result<Channel> find_host() {
    Error last;
    for (auto pause = 10ms;; pause = std::min<std::chrono::milliseconds>(2 * pause, 500ms)) {
      for (uint16_t i = 0; i < Job::kPorts; i++) {
        const auto port = static_cast<uint16_t>(job_.port + i);
        auto found = knock(job_, port, Deadline(kWelcomeTimeout).sooner(deadline_));
        if (found || found.error().code == Code::invalid) return found;
        last = found.error();
      }
      if (deadline_.expired())
        return fail(last.code == Code::exhausted ? last.code : Code::timeout,
                    "rank 0 was not met at {} to {}: {}", place(job_.address, job_.port),
                    job_.port + Job::kPorts - 1, last.text);
      std::this_thread::sleep_for(pause);
    }
  }

  const Job& job_;
  Deadline deadline_;
};

}  // namespace

Result<Met> meet(const Job& job, const MakeFacts& make_facts, Clock::duration timeout,
                 const Log& log) {
  const Deadline deadline(timeout);
  if (job.rank != 0) return Member(job, deadline).run(make_facts);
  auto poller = Poller::create();
  if (!poller) return pass(poller);
  return Host(job, deadline, log, std::move(*poller)).run(make_facts);
}

}  // namespace crosstie
