// SPDX-License-Identifier: Apache-2.0
// Both ways between JSON and what a topology is made of. Bandwidths are one way, in bytes a
// second, times in seconds; numbers of many bits are hexadecimal text, as JSON's have but 53.
#pragma once
#include <nlohmann/json.hpp>

#include "topology/topology.h"

namespace crosstie::json {

using Json = nlohmann::ordered_json;

inline constexpr std::string_view kSchema = "crosstie-topology";
// Goes up with every change that an old reader would stumble over.
inline constexpr int kVersion = 2;

// What is wrong, and where; does not leave the reader.
struct Wrong {
  std::string where, what;
};

// A value and the way to it, as "devices[3].identity".
class Value {
 public:
  Value(const Json& json, std::string path) : json_(&json), path_(std::move(path)) {}

  // All throw Wrong.
  Value at(std::string_view key) const;
  std::optional<Value> find(std::string_view key) const;  // none if null, too
  std::vector<Value> items() const;                       // of an array
  std::vector<Value> items(std::string_view key) const;   // none if there is no such array
  std::vector<std::string_view> keys() const;
  std::string text() const;
  int64_t whole(int64_t least, int64_t most) const;
  double real(double least, double most) const;
  bool flag() const;
  uint64_t bits(int count) const;  // hexadecimal text
  bool is_null() const { return json_->is_null(); }
  Bdf bdf() const;
  template <class Word>
  Word word() const {
    const auto known = crosstie::word<Word>(text());
    return known ? *known : throw Wrong{path_, "is '" + text() + "', which is not known here"};
  }
  [[noreturn]] void wrong(std::string what) const { throw Wrong{path_, std::move(what)}; }

 private:
  const Json* json_;
  std::string path_;
};

Json plain(const std::string& value);
Json plain(double value);
Json plain(int value);
Json plain(bool value);
Json plain(uint32_t value);
Json plain(uint64_t value);
Json plain(const Bdf& value);
Json plain(Bandwidth value);
Json plain(Seconds value);
Json plain(const CpuModel& value);
Json plain(const PciIds& value);
Json plain(const FabricClique& value);
Json plain(const std::vector<Gid>& value);

void read(const Value& from, std::string& to);
void read(const Value& from, double& to);
void read(const Value& from, int& to);
void read(const Value& from, bool& to);
void read(const Value& from, uint32_t& to);
void read(const Value& from, uint64_t& to);
void read(const Value& from, Bdf& to);
void read(const Value& from, Bandwidth& to);
void read(const Value& from, Seconds& to);
void read(const Value& from, CpuModel& to);
void read(const Value& from, PciIds& to);
void read(const Value& from, FabricClique& to);
void read(const Value& from, std::vector<Gid>& to);

template <class T>
void put(Json& out, std::string_view key, const Property<T>& property) {
  if (property)
    out[std::string(key)] = {{"value", plain(property->value)}, {"from", name(property->from)}};
}

template <class T>
void read(const Value& from, std::string_view key, Property<T>& to) {
  const auto found = from.find(key);
  if (!found) return;
  Known<T> known;
  read(found->at("value"), known.value);
  known.from = found->at("from").word<Provenance>();
  to = std::move(known);
}

}  // namespace crosstie::json
