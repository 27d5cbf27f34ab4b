// SPDX-License-Identifier: Apache-2.0
// What a communicator is for, by its name and its shape, and what follows from that. Rules and
// policies are data (data/classes.toml says their form); given the same rules, every rank of a
// communicator finds the same, whatever was created before.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/embedded.h"
#include "base/result.h"
#include "base/words.h"

namespace crosstie {

// What a choice may be a little slower for.
enum class Aim : uint8_t { time, latency, bandwidth, compute };
template <>
struct Names<Aim> {
  static constexpr std::array<std::string_view, 4> all = {"time", "latency", "bandwidth",
                                                          "compute"};
};

struct ClassPolicy {
  Aim aim = Aim::time;
  double worth = 0;       // so much slower a choice may be that serves the aim; 0.05: a twentieth
  uint32_t channels = 0;  // at most so many; 0: the executor's own number
  int service_level = -1, traffic_class = -1;  // of the network; -1: as it is configured
  uint32_t nvls_from_ranks = 0;  // in each NVLink domain, for NVLS to be chosen; 0: never
};

// Zeros where it is not told how many ranks a node (NCCL's: an NVLink domain) has.
struct CommunicatorShape {
  uint32_t ranks = 0, nodes = 0, fewest_ranks_per_node = 0, most_ranks_per_node = 0;
};

struct CommunicatorClass {
  TrafficClass traffic = TrafficClass::unknown;
  ClassPolicy policy;
  bool nvls = false;   // whether NVLS may be chosen
  std::string reason;  // the rule that said so

  uint64_t digest() const;  // of all but the reason
};

// "*" is any text, "?" any one byte; the rest is itself. Not fnmatch(3), which goes by the locale,
// and that is each host's own.
bool matches(std::string_view pattern, std::string_view name);

class ClassRules {
 public:
  static ClassRules built_in();
  // Those of the text before these, its policies over these, key by key. `source`: its name.
  Result<ClassRules> with(std::string_view toml, std::string_view source) const;

  CommunicatorClass classify(std::string_view name, const CommunicatorShape& shape) const;
  // Where the class is known: what follows from it.
  CommunicatorClass of(TrafficClass traffic, const CommunicatorShape& shape) const;

 private:
  friend class ClassRulesReader;

  struct Range {
    uint32_t low = 0, high = UINT32_MAX;
    bool holds(uint32_t number) const { return low <= number && number <= high; }
    bool any() const { return low == 0 && high == UINT32_MAX; }
  };
  struct Rule {
    TrafficClass traffic = TrafficClass::unknown;
    std::vector<std::string> names;  // none: any
    Range ranks, nodes, ranks_per_node;
    std::string where;  // for the reason

    bool fits(std::string_view name, const CommunicatorShape& shape) const;
  };

  std::vector<Rule> rules_;
  std::array<ClassPolicy, Names<TrafficClass>::all.size()> policies_;
};

// The file of that name, built in.
std::span<const EmbeddedToml> known_class_rules();

}  // namespace crosstie
