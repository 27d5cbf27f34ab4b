// SPDX-License-Identifier: Apache-2.0
// The field's words, one enumeration and one name table each. Names are what users type and
// what we print.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/log.h"

namespace crosstie {

// The first seven in NCCL's order (nccl.h has no such enumeration; tuner plugins index with it).
enum class Algorithm : uint8_t {
  tree,
  ring,
  collnet_direct,
  collnet_chain,
  nvls,
  nvls_tree,
  pat,
  hierarchical,
};
enum class Protocol : uint8_t { ll, ll128, simple };
// In NCCL's order.
enum class Collective : uint8_t { broadcast, reduce, all_gather, reduce_scatter, all_reduce };
enum class DataType : uint8_t { f32, u64 };
enum class ReduceOp : uint8_t { sum };
// What a collective is for: the parallelism of the model whose traffic it is.
enum class TrafficClass : uint8_t { unknown, tp, pp, dp, cp, ep, control };

template <class Word>
struct Names;

template <>
struct Names<Algorithm> {
  static constexpr std::array<std::string_view, 8> all = {
      "tree",      "ring", "collnet_direct", "collnet_chain", "nvls",
      "nvls_tree", "pat",  "hierarchical"};
};
template <>
struct Names<Protocol> {
  static constexpr std::array<std::string_view, 3> all = {"ll", "ll128", "simple"};
};
template <>
struct Names<Collective> {
  static constexpr std::array<std::string_view, 5> all = {"broadcast", "reduce", "all_gather",
                                                          "reduce_scatter", "all_reduce"};
};
template <>
struct Names<DataType> {
  static constexpr std::array<std::string_view, 2> all = {"f32", "u64"};
};
template <>
struct Names<ReduceOp> {
  static constexpr std::array<std::string_view, 1> all = {"sum"};
};
template <>
struct Names<TrafficClass> {
  static constexpr std::array<std::string_view, 7> all = {"unknown", "tp", "pp",     "dp",
                                                          "cp",      "ep", "control"};
};
template <>
struct Names<Level> {
  static constexpr std::array<std::string_view, 5> all = {"none", "error", "warn", "info", "debug"};
};

template <class Word>
constexpr std::string_view name(Word word) {
  return Names<Word>::all[static_cast<size_t>(word)];
}

template <class Word>
constexpr std::optional<Word> word(std::string_view text) {
  for (size_t i = 0; i < Names<Word>::all.size(); i++)
    if (Names<Word>::all[i] == text) return static_cast<Word>(i);
  return std::nullopt;
}

// As people and other tools spell it too: "AllReduce", "all-reduce" and "ALLREDUCE" for all_reduce.
template <class Word>
constexpr std::optional<Word> spelled(std::string_view text) {
  const auto separates = [](char c) { return c == '_' || c == '-' || c == ' '; };
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  const auto same = [&](std::string_view a, std::string_view b) {
    for (size_t i = 0, j = 0;; i++, j++) {
      while (i < a.size() && separates(a[i])) i++;
      while (j < b.size() && separates(b[j])) j++;
      if (i == a.size() || j == b.size()) return i == a.size() && j == b.size();
      if (lower(a[i]) != lower(b[j])) return false;
    }
  };
  for (size_t i = 0; i < Names<Word>::all.size(); i++)
    if (same(Names<Word>::all[i], text)) return static_cast<Word>(i);
  return std::nullopt;
}

constexpr size_t size_of(DataType type) { return type == DataType::f32 ? 4 : 8; }

}  // namespace crosstie
