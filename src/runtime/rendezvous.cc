// SPDX-License-Identifier: Apache-2.0
#include "runtime/rendezvous.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <list>
#include <nlohmann/json.hpp>
#include <thread>

namespace crosstie {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

enum Type : uint8_t {
  kHello = 'H',    // member: who it is
  kWelcome = 'W',  // rank 0: that is one of us
  kReject = 'R',   // rank 0: in words, why not; also when the time is up
  kFacts = 'F',    // member
  kTable = 'T',    // rank 0: everybody's facts
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

struct Hello {
  uint64_t job = 0;
  int rank = -1, ranks = -1;
};

std::string text_of(const Job& job) {
  return fmt::format("{} {} {} {}", kMagic, job.id, job.rank, job.ranks);
}

std::optional<Hello> parse_hello(const std::string& text) {
  Hello hello;
  if (!text.starts_with(kMagic)) return std::nullopt;
  const char* rest = text.c_str() + kMagic.size();
  const int read = std::sscanf(rest, " %" SCNu64 " %d %d", &hello.job, &hello.rank, &hello.ranks);
  return read == 3 ? std::optional(hello) : std::nullopt;
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

// Rank 0's side.
class Host {
 public:
  Host(const Job& job, Deadline deadline, const Log& log)
      : job_(job), deadline_(deadline), log_(log) {
    met_.facts.resize(static_cast<size_t>(job.ranks));
    met_.star.spokes.resize(static_cast<size_t>(job.ranks));
  }

  Result<Met> run(const MakeFacts& make_facts) {
    const auto listening = listen();
    if (!listening) return pass(listening);
    while (missing_ > 0) {
      const auto turned = turn();
      if (!turned) return give_up(turned.error());
    }
    listener_.reset();  // before the table: a rank that has it may meet again at this port
    auto own = make_facts(telling(job_, address_));
    if (!own) return give_up(own.error());
    met_.facts[0] = std::move(*own);
    const auto sent = send_table();
    if (!sent) return pass(sent);
    return std::move(met_);
  }

 private:
  struct Guest {
    Channel channel;
    Deadline patience;
    int rank = -1;  // once it has said so
  };

  Status listen() {
    Status last;
    for (uint16_t i = 0; i < Job::kPorts; i++) {
      auto fd = listen_on(job_.address, static_cast<uint16_t>(job_.port + i));
      if (fd) {
        listener_ = std::move(*fd);
        return {};
      }
      last = pass(fd);
    }
    return last;
  }

  Status turn() {
    std::vector<pollfd> fds = {{listener_.get(), POLLIN, 0}};
    for (const Guest& guest : guests_) fds.push_back({guest.channel.fd(), POLLIN, 0});
    if (deadline_.expired())
      return fail(Code::timeout, "ranks {} of {} have not come to {}:{}", ranges(met_.star.spokes),
                  job_.ranks, job_.address, job_.port);
    // Often enough to drop the silent.
    if (poll(fds.data(), fds.size(), std::min(deadline_.poll_ms(), 1000)) < 0 && errno != EINTR)
      return fail_errno(Code::io, "poll");
    for (auto it = guests_.begin(); it != guests_.end();)
      it = serve(*it) ? std::next(it) : guests_.erase(it);
    return accept_all();
  }

  Status accept_all() {
    for (;;) {
      Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!fd && (errno == EMFILE || errno == ENFILE))
        return fail_errno(Code::exhausted, fmt::format("rank 0 cannot hold {} connections (see "
                                                       "ulimit -n)",
                                                       job_.ranks - 1));
      if (!fd) return {};
      guests_.push_back({Channel(std::move(fd), kMostHello), Deadline(kHelloTimeout)});
    }
  }

  // False: this guest is to be forgotten.
  bool serve(Guest& guest) {
    for (;;) {
      auto frame = guest.channel.receive();
      if (!frame) {
        log_.debug("rendezvous: dropped a connection: {}", frame.error().text);
        return false;
      }
      if (!*frame) return guest.rank >= 0 || !guest.patience.expired();
      if ((*frame)->type == kHello && guest.rank < 0) {
        if (!welcome(guest, (*frame)->payload)) return false;
      } else if ((*frame)->type == kFacts && guest.rank >= 0) {
        admit(guest, std::move((*frame)->payload));
        return false;
      } else {
        return false;
      }
    }
  }

  bool welcome(Guest& guest, const std::string& text) {
    const auto hello = parse_hello(text);
    if (!hello) return false;
    const std::string why = refusal(*hello);
    if (why.empty()) {
      guest.rank = hello->rank;
      return static_cast<bool>(guest.channel.send(kWelcome, ""));
    }
    log_.warn("rendezvous: turned a process away: {}", why);
    static_cast<void>(guest.channel.send(kReject, why));
    return false;
  }

  // Empty: it is one of us.
  std::string refusal(const Hello& hello) const {
    if (hello.job != job_.id) return std::string(kOtherJob);
    if (hello.ranks != job_.ranks)
      return fmt::format("rank {} believes in {} ranks, rank 0 in {}", hello.rank, hello.ranks,
                         job_.ranks);
    if (hello.rank < 1 || hello.rank >= job_.ranks)
      return fmt::format("there can be no second rank {}", hello.rank);
    return met_.star.spokes[static_cast<size_t>(hello.rank)]
               ? fmt::format("there is a rank {} already", hello.rank)
               : "";
  }

  void admit(Guest& guest, std::string facts) {
    const auto rank = static_cast<size_t>(guest.rank);
    if (met_.star.spokes[rank]) return;  // two came with one rank: the first is in
    note_address(guest.channel.local_address());
    met_.facts[rank] = std::move(facts);
    met_.star.spokes[rank] = std::move(guest.channel);
    missing_--;
  }

  // Where others reach us. One that came by loopback says nothing of how the rest do.
  void note_address(const std::string& address) {
    if (address_.empty() || !is_loopback(address)) address_ = address;
  }

  Status send_table() {
    // What ranks say of themselves may be any bytes.
    const std::string table =
        json(met_.facts).dump(-1, ' ', true, json::error_handler_t::replace);
    for (Channel& spoke : met_.star.spokes) {
      if (!spoke) continue;
      const auto sent = spoke.send(kTable, table);
      if (!sent) return pass(sent, "a rank left while the job was meeting");
    }
    while (unsent()) {
      if (deadline_.expired()) return fail(Code::timeout, "a rank does not take the job's facts");
      std::this_thread::sleep_for(1ms);
    }
    return {};
  }

  bool unsent() {
    bool any = false;
    for (Channel& spoke : met_.star.spokes) {
      if (!spoke || !spoke.has_unsent()) continue;
      any |= static_cast<bool>(spoke.flush()) && spoke.has_unsent();
    }
    return any;
  }

  // Those who have come learn why it comes to nothing.
  Result<Met> give_up(const Error& error) {
    for (Channel& spoke : met_.star.spokes)
      if (spoke) static_cast<void>(spoke.send(kReject, error.text));
    return tl::unexpected<Error>(error);
  }

  const Job& job_;
  Deadline deadline_;
  const Log& log_;
  Met met_;
  Fd listener_;
  std::list<Guest> guests_;
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
    if (table->type != kTable) return fail(Code::timeout, "{}", table->payload);
    return read(std::move(*hub), table->payload);
  }

 private:
  Result<Channel> find_host() {
    for (auto pause = 10ms;; pause = std::min<std::chrono::milliseconds>(2 * pause, 500ms)) {
      for (uint16_t i = 0; i < Job::kPorts; i++) {
        auto found = try_port(static_cast<uint16_t>(job_.port + i));
        if (found) return found;
        if (found.error().code == Code::invalid) return found;
        last_ = found.error().text;
      }
      if (deadline_.expired())
        return fail(Code::timeout, "rank 0 was not met at {}:{} to {}: {}", job_.address, job_.port,
                    job_.port + Job::kPorts - 1, last_);
      std::this_thread::sleep_for(pause);
    }
  }

  // Code::invalid: rank 0 is there and does not want us.
  Result<Channel> try_port(uint16_t port) {
    const Deadline soon = Deadline(kWelcomeTimeout).sooner(deadline_);
    auto channel = connect_channel(job_.address, port, soon, kMostTable);
    if (!channel) return channel;
    const auto sent = channel->send(kHello, text_of(job_));
    if (!sent) return pass(sent);
    const auto answer = channel->receive(soon);
    if (!answer) return pass(answer);
    if (answer->type == kReject && answer->payload != kOtherJob)
      return fail(Code::invalid, "rank 0 at {}:{} says: {}", job_.address, port, answer->payload);
    if (answer->type != kWelcome)
      return fail(Code::peer, "port {} is another job's or program's", port);
    return channel;
  }

  Result<Met> read(Channel hub, const std::string& table) {
    const json facts = json::parse(table, nullptr, false);
    if (!facts.is_array() || facts.size() != static_cast<size_t>(job_.ranks))
      return fail(Code::peer, "rank 0 sent no table of {} ranks", job_.ranks);
    Met met;
    met.star.hub = std::move(hub);
    for (const json& fact : facts)
      met.facts.push_back(fact.is_string() ? fact.get<std::string>() : "");
    return met;
  }

  const Job& job_;
  Deadline deadline_;
  std::string last_;
};

}  // namespace

Result<Met> meet(const Job& job, const MakeFacts& make_facts, Clock::duration timeout,
                 const Log& log) {
  const Deadline deadline(timeout);
  return job.rank == 0 ? Host(job, deadline, log).run(make_facts)
                       : Member(job, deadline).run(make_facts);
}

}  // namespace crosstie
