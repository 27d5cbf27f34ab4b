// SPDX-License-Identifier: Apache-2.0
// What a fuzz target begins with: its corpus, words it knows, how much of it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace crosstie::fuzz {

inline constexpr size_t kMostInput = 64 << 10;

struct Inputs {
  std::vector<std::string> corpus;      // what its files hold, by name
  std::vector<std::string> dictionary;  // of NAME.dict, in libFuzzer's format
  int runs = 0;                         // mutations at effort 1
};
// From tests/fuzz of the source tree, and what the target's row says.
Inputs inputs_of(const std::string& target);
// The first kMostInput bytes.
std::string read_input(const std::string& file);
// Writes a failing input into the working folder; the file's name.
std::string keep_input(const std::string& target, std::string_view input);

}  // namespace crosstie::fuzz
