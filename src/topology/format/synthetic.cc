// SPDX-License-Identifier: Apache-2.0
// Topologies by name: "[COUNTx] MACHINE".
#include <algorithm>
#include <charconv>

#include "base/edit_distance.h"
#include "base/text.h"
#include "topology/domain.h"
#include "topology/format/formats.h"

namespace crosstie {
namespace {

constexpr uint32_t kMostHosts = 1 << 20;

// A GPU tells more than a maker: "h200" and "dgx-h200" are for hgx-h200.
std::string_view meant_by(std::string_view wanted, const std::vector<std::string_view>& names) {
  const size_t dash = wanted.rfind('-');
  const std::string_view gpu = dash == wanted.npos ? wanted : wanted.substr(dash + 1);
  constexpr size_t kLeastLetters = 3, kMostWrongLetters = 3;
  if (gpu.size() >= kLeastLetters)
    for (const std::string_view name : names)
      if (fmt::format("-{}", name).find(fmt::format("-{}", gpu)) != std::string::npos) return name;
  return nearest(wanted, names, kMostWrongLetters);
}

tl::unexpected<Error> unknown_machine(std::string_view wanted) {
  std::vector<std::string_view> names;
  for (const KnownMachine& m : known_machines()) names.push_back(m.name);
  const std::string_view meant = meant_by(wanted, names);
  return fail(Code::invalid, "'{}' is neither a file nor one of the known machines {}{}", wanted,
              fmt::join(names, ", "),
              meant.empty() ? std::string() : fmt::format("; did you mean {}?", meant));
}

const KnownMachine* find_known(std::string_view name) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  for (const KnownMachine& known : known_machines())
    if (std::ranges::equal(known.name, name, {}, {}, lower)) return &known;
  return nullptr;
}

std::string host_name(std::string_view machine, uint32_t index, uint32_t hosts) {
  return hosts == 1 ? std::string(machine) : fmt::format("{}-{}", machine, index);
}

}  // namespace

Result<Wish> parse_wish(std::string_view text) {
  Wish wish{1, trim(text)};
  uint32_t count = 0;
  const char* const begin = wish.machine.data();
  const char* const end = begin + wish.machine.size();
  const auto [after, error] = std::from_chars(begin, end, count);
  if (after != begin && after != end && *after == 'x') {
    if (error != std::errc() || count == 0 || count > kMostHosts)
      return fail(Code::invalid, "'{}': the number of hosts must be from 1 to {}", text,
                  kMostHosts);
    wish = {count, trim({after + 1, static_cast<size_t>(end - after - 1)})};
  }
  if (wish.machine.empty()) return fail(Code::invalid, "'{}' names no machine", text);
  return wish;
}

bool is_known_machine(std::string_view name) { return find_known(name) != nullptr; }

Result<Topology> read_synthetic(std::string_view text) {
  const auto wish = parse_wish(text);
  if (!wish) return pass(wish);
  const KnownMachine* const known = find_known(wish->machine);
  if (known == nullptr) return unknown_machine(wish->machine);
  auto machine = read_machine_toml(known->toml, "built-in description");
  if (!machine) return pass(machine, known->name);
  const auto shared = std::make_shared<const Machine>(std::move(*machine));
  Topology topology;
  for (uint32_t i = 0; i < wish->hosts; i++)
    topology.hosts.push_back({host_name(known->name, i, wish->hosts), shared});
  assume_domains(topology.hosts, known->name);
  return topology;
}

}  // namespace crosstie
