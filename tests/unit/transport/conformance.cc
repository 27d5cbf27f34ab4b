// SPDX-License-Identifier: Apache-2.0
// The suite that any transport must pass. `conformance.t TEXT` runs the cases whose name holds
// TEXT; options are for other harnesses and ignored.
#include "knobs.h"
#include "suite.h"
#include "tap.h"
#include "transport/shm.h"
#include "transport/tcp.h"

namespace crosstie::test {
namespace {

// What is rare with ample queues happens all the time.
Transport with_short_queues(Transport transport) {
  transport.variant = " with short queues";
  transport.make = [make = transport.make](TransportOptions options) {
    // A case that sets its own means them.
    if (options.queue_depth == default_options().queue_depth) options.queue_depth = 4;
    if (options.shm_ring == default_options().shm_ring) options.shm_ring = 64;
    return make(options);
  };
  return transport;
}

std::string title(const Case& one, const Transport& transport) {
  return fmt::format("{}{}: {}", transport.name, transport.variant, one.name);
}

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const auto& some : {moving_cases(), ending_cases(), meeting_cases(), hostile_cases(),
                           lane_cases(), device_cases()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

// With effort the same again and again: what races are about is different every time.
void run_often(const Case& one, const Transport& transport, Tap& tap) {
  const auto begin = Clock::now();
  std::string wrong;
  int done = 0;
  while (wrong.empty() && done < rounds(1)) wrong = run_alone(one, transport), done++;
  const std::chrono::duration<double> took = Clock::now() - begin;
  tap.check(wrong.empty(), title(one, transport), fmt::format("{}, in round {}", wrong, done));
  fmt::print("# {:.2f} s\n", took.count());
}

int run_all(std::string_view wanted) {
  Tap tap;
  for (const Transport& transport : transports())
    for (const Case& one : all_cases()) {
      if (!one.only.empty() && one.only != transport.name) continue;
      if (title(one, transport).find(wanted) == std::string::npos) continue;
      run_often(one, transport, tap);
    }
  return tap.finish();
}

}  // namespace

std::vector<Transport> transports() {
  const Transport shm = {
      "shm", [](const TransportOptions& options) { return make_shm_worker(options, Log()); }};
  const Transport tcp = {
      "tcp", [](const TransportOptions& options) { return make_tcp_worker(options, Log()); }};
  if (!whole_matrix()) return {shm, tcp};
  return {shm, tcp, with_short_queues(shm), with_short_queues(tcp)};
}

}  // namespace crosstie::test

int main(int argc, char** argv) {
  const std::string_view wanted = argc > 1 && argv[1][0] != '-' ? argv[1] : "";
  return crosstie::test::run_all(wanted);
}
