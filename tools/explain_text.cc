// SPDX-License-Identifier: Apache-2.0
// An explanation as text for people, and as JSON for programs.
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "explain.h"

namespace crosstie::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchema = 1;
constexpr size_t kColumns = 80;

// To the nanosecond: what is beyond is noise of arithmetic.
double us(Seconds time) { return std::round(time.count() * 1e9) / 1e3; }

double quality(const Decision& of) { return of.bound.time / of.chosen().prediction.time(); }

// Of words, lines within the columns.
std::string wrapped(std::string_view text, size_t indent) {
  std::string out, line(indent, ' ');
  for (text = trim(text); !text.empty();) {
    const std::string_view word = text.substr(0, text.find(' '));
    if (line.size() > indent && line.size() + 1 + word.size() > kColumns) {
      out += line + "\n";
      line.assign(indent, ' ');
    }
    if (line.size() > indent) line += ' ';
    line += word;
    text = trim(text.substr(word.size()));
  }
  return out + line + "\n";
}

// What the class asks of the network; nothing: as it is configured.
std::string network_text(const ClassPolicy& policy) {
  std::string text;
  if (policy.service_level >= 0) text += fmt::format(", SL {}", policy.service_level);
  if (policy.traffic_class >= 0) text += fmt::format(", TC {}", policy.traffic_class);
  return text;
}

std::string class_text(const CommunicatorClass& of) {
  const ClassPolicy& policy = of.policy;
  std::string text = fmt::format("class {}: aim {}", name(of.traffic), name(policy.aim));
  if (policy.worth > 0) text += fmt::format(" (worth {:g} %)", 100 * policy.worth);
  text += of.nvls ? ", NVLS allowed" : ", NVLS not allowed";
  if (policy.nvls_from_ranks > 0)
    text += fmt::format(" (from {} ranks a node)", policy.nvls_from_ranks);
  if (policy.channels > 0) text += fmt::format(", at most {} channels", policy.channels);
  return text + network_text(policy);
}

std::string head_text(const Explanation& of) {
  return fmt::format("{}: {} GPUs on {}{}\nsystem {}{}\n", name(of.collective), of.job.ranks,
                     of.hosts == 1 ? "1 host" : fmt::format("{} hosts", of.hosts),
                     of.nccl.empty() ? "" : ", NCCL " + of.nccl, of.system,
                     of.profile.empty() ? "" : ", profile " + of.profile) +
         wrapped(class_text(of.communicator_class), 0) +
         fmt::format("{:>6} {:21} {:>2} {:>11} {:>10} {:>4}  {}\n", "bytes", "choice", "ch", "us",
                     "bound us", "q", "NCCL's own");
}

std::string candidates_text(const Decision& decision) {
  std::string text;
  for (const Considered& of : decision.candidates) {
    text += fmt::format("       {:21} {:>2} {:>11.1f}{}\n", pair_text(of), of.channels,
                        us(of.prediction.time()),
                        of.why_not.empty() ? "" : fmt::format("  no: {}", of.why_not));
    std::string terms;
    for (const Term& term : of.prediction.terms())
      terms += fmt::format("{}{} {:.1f}", terms.empty() ? "" : ", ", term.name, us(term.time));
    text += wrapped(terms, 9);
  }
  return text;
}

Json considered_json(const Considered& of) {
  return {{"executor", name(of.executor)},
          {"algorithm", hyphens(name(of.algorithm))},
          {"protocol", name(of.protocol)},
          {"channels", of.channels},
          {"time_us", us(of.prediction.time())}};
}

Json candidate_json(const Considered& of) {
  Json json = considered_json(of);
  json["valid"] = of.why_not.empty();
  if (!of.why_not.empty()) json["why_not"] = of.why_not;
  json["terms"] = Json::array();
  for (const Term& term : of.prediction.terms())
    json["terms"].push_back({{"name", term.name}, {"us", us(term.time)}, {"source", term.source}});
  return json;
}

Json decision_json(const Decision& decision) {
  Json json{{"bytes", decision.bytes}, {"choice", considered_json(decision.chosen())}};
  json["nccl"] = decision.nccl ? considered_json(*decision.nccl) : Json();
  json["candidates"] = Json::array();
  for (const Considered& of : decision.candidates) json["candidates"].push_back(candidate_json(of));
  json["bound_us"] = us(decision.bound.time);
  json["bound_by"] = decision.bound.by;
  json["quality"] = std::round(1e3 * quality(decision)) / 1e3;
  json["reason"] = decision.reason;
  return json;
}

// SL and TC are null where they are as configured.
Json class_json(const CommunicatorClass& of) {
  const auto configured = [](int value) { return value < 0 ? Json() : Json(value); };
  return {{"name", name(of.traffic)},
          {"aim", name(of.policy.aim)},
          {"worth", of.policy.worth},
          {"nvls", of.nvls},
          {"nvls_from_ranks", of.policy.nvls_from_ranks},
          {"channels", of.policy.channels},
          {"service_level", configured(of.policy.service_level)},
          {"traffic_class", configured(of.policy.traffic_class)}};
}

}  // namespace

std::string hyphens(std::string_view name) {
  std::string text(name);
  for (char& c : text)
    if (c == '_') c = '-';
  return text;
}

std::string pair_text(const Considered& of) {
  return fmt::format("{}/{}", hyphens(name(of.algorithm)), name(of.protocol));
}

// A reason stands once for all sizes in a row that have it.
std::string explanation_text(const Explanation& explanation, bool all) {
  std::string text = head_text(explanation);
  std::string_view said;
  for (const Decision& of : explanation.decisions) {
    const Considered& chosen = of.chosen();
    text +=
        fmt::format("{:>6} {:21} {:>2} {:>11.1f} {:>10.1f} {:>4.2f}  {}\n", bytes_text(of.bytes),
                    pair_text(chosen), chosen.channels, us(chosen.prediction.time()),
                    us(of.bound.time), quality(of), of.nccl ? pair_text(*of.nccl) : "-");
    if (of.reason != said) text += wrapped(of.reason, 7);
    said = of.reason;
    if (all) text += candidates_text(of);
  }
  for (const Crossover& of : explanation.crossovers)
    text +=
        fmt::format("from {} bytes: {} after {}\n", of.bytes, pair_text(of.to), pair_text(of.from));
  for (const std::string& note : explanation.notes) text += wrapped("note: " + note, 0);
  return text;
}

std::string explanation_json(const Explanation& of) {
  Json json{{"schema", kSchema},
            {"collective", name(of.collective)},
            {"system", of.system},
            {"hosts", of.hosts},
            {"ranks", of.job.ranks},
            {"release", of.nccl.empty() ? Json() : Json(of.nccl)},
            {"profile", of.profile.empty() ? Json() : Json(of.profile)},
            {"notes", of.notes},
            {"class", class_json(of.communicator_class)},
            {"decisions", Json::array()},
            {"crossovers", Json::array()}};
  for (const Decision& decision : of.decisions)
    json["decisions"].push_back(decision_json(decision));
  for (const Crossover& over : of.crossovers)
    json["crossovers"].push_back({{"bytes", over.bytes},
                                  {"from", considered_json(over.from)},
                                  {"to", considered_json(over.to)}});
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace crosstie::tools
