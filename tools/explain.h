// SPDX-License-Identifier: Apache-2.0
// What `crosstie explain` found out, and the forms in which it is told.
#pragma once
#include <string>
#include <vector>

#include "choice/decision.h"
#include "topology/format/drawing.h"

namespace crosstie::tools {

// From that size on another choice.
struct Crossover {
  uint64_t bytes;
  Considered from, to;
};

struct Explanation {
  Collective collective = Collective::all_reduce;
  std::string system, nccl;  // as it was asked for; the release, empty where RCCL runs
  std::string profile;       // as it was asked for; empty: the values that are built in
  uint32_t hosts = 0;
  CostJob job{};
  SystemFacts facts{};
  CommunicatorClass communicator_class{};
  std::vector<Decision> decisions{};  // of the sizes that were asked for
  std::vector<Decision> curve{};      // of many sizes from the least of them to the largest
  std::vector<Crossover> crossovers{};
  std::vector<std::string> warnings{}, notes{};
};

// "nvls-tree", "nvls-tree/simple".
std::string hyphens(std::string_view name);
std::string pair_text(const Considered& of);

// all: every candidate with its terms. Lines of at most 80 columns.
std::string explanation_text(const Explanation& of, bool all);
std::string explanation_json(const Explanation& of);
// The times of all candidates over size. Fails where Cairo is not built in.
Result<std::string> explanation_plot(const Explanation& of, Picture picture);

}  // namespace crosstie::tools
