// SPDX-License-Identifier: Apache-2.0
// How long one rank takes to make its Program, and how large it is, as jobs grow.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "schedule/schedule.h"

namespace crosstie {
namespace {

using Clock = std::chrono::steady_clock;

size_t steps_of(const Program& program) {
  size_t steps = 0;
  for (const Lane& lane : program.lanes) steps += lane.steps.size();
  return steps;
}

// Median of some runs, in milliseconds.
void measure(Algorithm algorithm, uint32_t hosts, uint32_t ranks_per_host) {
  const auto shape = std::make_shared<const Shape>(*Shape::regular(hosts, ranks_per_host));
  const auto schedule = *make_schedule(Collective::all_reduce, algorithm, shape);
  std::vector<double> times;
  size_t steps = 0;
  for (int i = 0; i < 15; i++) {
    const auto start = Clock::now();
    steps = steps_of(schedule.program(hosts * ranks_per_host / 2));
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  fmt::print("{:<14}{:>6} x {}{:>10} steps{:>10.3f} ms\n", name(algorithm), hosts, ranks_per_host,
             steps, times[times.size() / 2]);
  std::fflush(stdout);
}

}  // namespace
}  // namespace crosstie

int main() {
  using namespace crosstie;
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::hierarchical})
    for (const uint32_t hosts : {2u, 32u, 512u, 2048u}) measure(algorithm, hosts, 8);
}
