// SPDX-License-Identifier: Apache-2.0
#include "choice/class_rules.h"

#include <bit>
#include <charconv>
#include <utility>

#include "base/digest.h"
#include "base/toml.h"

namespace crosstie {

constexpr int64_t kSchema = 1;
constexpr int64_t kMostRanks = 1 << 24;
constexpr int64_t kMostChannels = 64;  // NCCL's MAXCHANNELS

// One file, into rules that may be there already.
class ClassRulesReader : private TomlValues {
 public:
  ClassRulesReader(ClassRules rules, std::string_view source)
      : rules_(std::move(rules)), source_(source) {}

  Result<ClassRules> read(const toml::table& root) {
    if (need<int64_t>(root, "schema") != kSchema && status_)
      mistake(*root.get("schema"), fmt::format("the schema is not {}", kSchema));
    allow(root, "a file of class rules", {"schema", "rule", "policy"});
    for_each_table(root, "rule", [&](const auto& in) { read_rule(in); });
    if (const toml::node* const policies = root.get("policy")) read_policies(*policies);
    if (!status_) return pass(status_);
    rules_.rules_.insert(rules_.rules_.begin(), read_.begin(), read_.end());
    return std::move(rules_);
  }

 private:
  template <class Word>
  Word need_word(const toml::table& in, std::string_view key) {
    const auto text = need<std::string>(in, key);
    const auto found = word<Word>(text);
    if (!found && status_)
      mistake(*in.get(key), fmt::format("'{}' is none of {}", printable(text),
                                        fmt::join(Names<Word>::all, ", ")));
    return found.value_or(Word{});
  }

  void read_rule(const toml::table& in) {
    allow(in, "[[rule]]", {"class", "names", "ranks", "nodes", "ranks_per_node"});
    ClassRules::Rule rule;
    rule.traffic = need_word<TrafficClass>(in, "class");
    for (const toml::node& name : list(in, "names"))
      if (const auto text = name.value_exact<std::string>())
        rule.names.push_back(*text);
      else
        mistake(name, "a name is text");
    rule.ranks = range(in, "ranks");
    rule.nodes = range(in, "nodes");
    rule.ranks_per_node = range(in, "ranks_per_node");
    rule.where = fmt::format("{} line {}", source_, in.source().begin.line);
    read_.push_back(std::move(rule));
  }

  // 8, "2-8", "16-" or "-4".
  ClassRules::Range range(const toml::table& in, std::string_view key) {
    const toml::node* const node = in.get(key);
    if (node == nullptr) return {};
    if (node->is_integer()) {
      const auto number = static_cast<uint32_t>(need_number<int64_t>(in, key, 1, kMostRanks));
      return {number, number};
    }
    const auto text = need<std::string>(in, key);
    const size_t dash = text.find('-');
    ClassRules::Range out;
    if (dash == std::string::npos || text.size() < 2 || !bound(text.substr(0, dash), out.low) ||
        !bound(text.substr(dash + 1), out.high) || out.low > out.high)
      mistake(*node, fmt::format("'{}' must be a number, \"2-8\", \"16-\" or \"-4\"", key));
    return out;
  }

  // Empty leaves the bound as it is.
  static bool bound(std::string_view text, uint32_t& out) {
    if (text.empty()) return true;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc() && end == text.data() + text.size();
  }

  void read_policies(const toml::node& policies) {
    if (!policies.is_table()) return mistake(policies, "policy must be a table of tables");
    for (const auto& [key, value] : *policies.as_table()) {
      const auto traffic = word<TrafficClass>(key.str());
      if (!traffic || !value.is_table())
        mistake(value,
                fmt::format("'policy.{}' is not the table of a class", printable(key.str())));
      if (!status_) return;
      read_policy(*value.as_table(), rules_.policies_[static_cast<size_t>(*traffic)]);
    }
  }

  void read_policy(const toml::table& in, ClassPolicy& policy) {
    allow(in, "a policy",
          {"aim", "worth", "channels", "service_level", "traffic_class", "nvls_from_ranks"});
    if (in.contains("aim")) policy.aim = need_word<Aim>(in, "aim");
    if (const auto worth = number_if_any<double>(in, "worth", 0, 1)) policy.worth = *worth;
    read_number(in, "channels", 0, kMostChannels, policy.channels);
    read_number(in, "service_level", -1, 15, policy.service_level);   // 4 bits, InfiniBand
    read_number(in, "traffic_class", -1, 255, policy.traffic_class);  // 8 bits, IP's and GRH's
    read_number(in, "nvls_from_ranks", 0, kMostRanks, policy.nvls_from_ranks);
  }

  template <class T>
  void read_number(const toml::table& in, std::string_view key, int64_t least, int64_t most,
                   T& out) {
    if (const auto number = number_if_any<int64_t>(in, key, least, most))
      out = static_cast<T>(*number);
  }

  ClassRules rules_;
  const std::string_view source_;
  std::vector<ClassRules::Rule> read_;
};

// Greedy: where it fails after a star, the star takes one byte more. Time is that of a product.
bool matches(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0, star = std::string_view::npos, retry = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*')
      star = p++, retry = n;
    else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n]))
      p++, n++;
    else if (star != std::string_view::npos)
      p = star + 1, n = ++retry;
    else
      return false;
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

bool ClassRules::Rule::fits(std::string_view name, const CommunicatorShape& shape) const {
  const std::string_view description = name.substr(0, name.find(':'));
  const auto named = [&](const std::string& pattern) {
    return matches(pattern, name) || matches(pattern, description);
  };
  if (!names.empty() && std::ranges::none_of(names, named)) return false;
  const bool per_node =
      ranks_per_node.any() || (ranks_per_node.holds(shape.fewest_ranks_per_node) &&
                               ranks_per_node.holds(shape.most_ranks_per_node));
  return per_node && ranks.holds(shape.ranks) && nodes.holds(shape.nodes);
}

ClassRules ClassRules::built_in() {
  const EmbeddedToml& file = known_class_rules().front();
  // It is read by a test.
  return ClassRules().with(file.toml, "built-in rules").value();
}

Result<ClassRules> ClassRules::with(std::string_view toml, std::string_view source) const {
  ClassRulesReader reader(*this, source);
  const auto rules = parse_toml(toml, [&](const toml::table& root) { return reader.read(root); });
  if (!rules) return pass(rules, source);
  return rules;
}

CommunicatorClass ClassRules::classify(std::string_view name,
                                       const CommunicatorShape& shape) const {
  const auto rule =
      std::ranges::find_if(rules_, [&](const Rule& r) { return r.fits(name, shape); });
  const bool found = rule != rules_.end();
  CommunicatorClass out = of(found ? rule->traffic : TrafficClass::unknown, shape);
  out.reason = found ? rule->where : "no rule";
  return out;
}

CommunicatorClass ClassRules::of(TrafficClass traffic, const CommunicatorShape& shape) const {
  CommunicatorClass out;
  out.traffic = traffic;
  out.policy = policies_[static_cast<size_t>(traffic)];
  const uint32_t least = out.policy.nvls_from_ranks;
  out.nvls = least > 0 && shape.fewest_ranks_per_node >= least;
  return out;
}

uint64_t CommunicatorClass::digest() const {
  return Digest()
      .add(traffic)
      .add(policy.aim)
      .add(std::bit_cast<uint64_t>(policy.worth))
      .add(policy.channels)
      .add(policy.service_level)
      .add(policy.traffic_class)
      .add(policy.nvls_from_ranks)
      .add(nvls)
      .value();
}

}  // namespace crosstie
