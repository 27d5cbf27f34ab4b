// SPDX-License-Identifier: Apache-2.0
#include "choice/choose.h"

#include <algorithm>
#include <utility>

#include "base/digest.h"

namespace crosstie {
namespace {

// A step between two ranks costs `step` + bytes / `rate`. Assumed, not measured: shared memory
// with one copy each way, and a TCP connection of a host of 10 Gbit/s. Only their proportions
// matter here.
struct Link {
  Seconds step;
  Bandwidth rate;
  Seconds time(double steps, double bytes) const {
    return steps * step + Seconds(bytes / rate.bytes_per_second);
  }
};
constexpr Link kInside{microseconds(5), gigabytes(5)};
constexpr Link kAcross{microseconds(30), gigabytes(1.25)};

// 2(N-1) steps in a row, each as slow as the slowest link; 2(N-1)/N of the message through
// every link (Patarasuk and Yuan, 2009).
Seconds ring_time(const Shape& shape, double bytes) {
  const double n = shape.ranks();
  const Link& slowest = shape.hosts().size() > 1 ? kAcross : kInside;
  return slowest.time(2 * (n - 1), 2 * (n - 1) / n * bytes);
}

// Inside: each rank puts (g-1)/g of the message and gets as much, twice, in one step each.
// Across: a ring over the hosts, in which each host's link carries 2(n-1)/n of the message.
// Chunks pipeline through the stages, so that the bytes of the slower one count.
Seconds hierarchical_time(const Shape& shape, double bytes) {
  const double g = shape.most_ranks_on_a_host();
  const auto n = static_cast<double>(shape.hosts().size());
  const Seconds steps = kInside.time(g > 1 ? 2 : 0, 0) + kAcross.time(2 * (n - 1), 0);
  return steps + std::max(kInside.time(0, 2 * (g - 1) / g * bytes),
                          kAcross.time(0, 2 * (n - 1) / n * bytes));
}

}  // namespace

Choice choose_all_reduce(const Shape& shape, uint64_t bytes) {
  Choice choice;
  const auto size = static_cast<double>(bytes);
  choice.candidates[0] = {Algorithm::ring, Protocol::simple, ring_time(shape, size)};
  choice.candidates[1] = {Algorithm::hierarchical, Protocol::simple,
                          hierarchical_time(shape, size)};
  choice.count = 2;
  // At equal times the ring stays first: it is the simpler one.
  if (choice.candidates[1].predicted < choice.candidates[0].predicted) {
    std::swap(choice.candidates[0], choice.candidates[1]);
    choice.reason = "the hierarchy takes fewer steps in a row and puts fewer bytes between hosts";
  } else {
    choice.reason = "the hierarchy has nothing to gain here";
  }
  choice.digest = Digest().add(shape.digest()).add(bytes).value();
  return choice;
}

}  // namespace crosstie
