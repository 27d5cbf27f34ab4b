// SPDX-License-Identifier: Apache-2.0
// A stray that says anything at all to rank 0 does no harm: rank 1, which comes after it, is met.
// A stray that knows the job's number is none, and may be taken for rank 1.
#include "runtime/rendezvous.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <thread>

#include "target.h"

using namespace crosstie;

namespace {

constexpr auto kPatience = std::chrono::seconds(10);
constexpr uint64_t kJob = 4711;

uint16_t free_port() {
  const Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  PROMISE(bind(fd.get(), generic, size) == 0 && getsockname(fd.get(), generic, &size) == 0);
  return ntohs(address.sin_port);
}

Job job_of(int rank, uint16_t port) {
  Job job;
  job.rank = rank, job.ranks = 2;
  job.address = "127.0.0.1";
  job.port = std::min<uint16_t>(port, 65000);
  job.id = kJob;
  return job;
}

Result<Met> take_part(const Job& job, Clock::duration patience = kPatience) {
  const auto facts = [&](const std::string&) -> Result<std::string> {
    return std::to_string(job.rank);
  };
  return meet(job, facts, patience, Log());
}

Fd call(const Job& job) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(job.port);
  for (const Deadline deadline(kPatience); !deadline.expired();) {
    Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
    std::this_thread::yield();
  }
  return {};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const uint16_t port = free_port();
  Result<Met> host = fail(Code::timeout, "not yet");
  std::thread rank0([&] { host = take_part(job_of(0, port)); });
  const Fd stray = call(job_of(1, port));
  if (stray) [[maybe_unused]]
    const ssize_t sent = send(stray.get(), data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  const bool knows = fuzz::text_of(data, size).find(std::to_string(kJob)) != std::string_view::npos;
  const auto guest = take_part(job_of(1, port), knows ? std::chrono::milliseconds(300) : kPatience);
  rank0.join();
  if (knows) return 0;
  PROMISE(host && guest);
  PROMISE(host->facts == guest->facts && host->facts[1] == "1");
  return 0;
}
