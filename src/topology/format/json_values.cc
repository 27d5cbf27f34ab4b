// SPDX-License-Identifier: Apache-2.0
#include "topology/format/json_values.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "base/printable.h"

namespace crosstie::json {
namespace {

// Far above what is built: a bound against slips, and against numbers that overflow when summed.
constexpr double kMostBytesPerSecond = 1e18;
constexpr double kMostSeconds = 1e6;
constexpr double kMostReal = 1e9;

}  // namespace

Value Value::at(std::string_view key) const {
  if (const auto found = find(key)) return *found;
  wrong(fmt::format("has no \"{}\"", key));
}

std::optional<Value> Value::find(std::string_view key) const {
  if (!json_->is_object()) wrong("is no object");
  const auto found = json_->find(std::string(key));
  if (found == json_->end() || found->is_null()) return std::nullopt;
  return Value(*found, path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key));
}

std::vector<Value> Value::items() const {
  if (!json_->is_array()) wrong("is no array");
  std::vector<Value> out;
  for (size_t i = 0; i < json_->size(); i++)
    out.emplace_back((*json_)[i], fmt::format("{}[{}]", path_, i));
  return out;
}

std::vector<Value> Value::items(std::string_view key) const {
  const auto found = find(key);
  return found ? found->items() : std::vector<Value>();
}

std::vector<std::string_view> Value::keys() const {
  if (!json_->is_object()) wrong("is no object");
  std::vector<std::string_view> out;
  for (const auto& [key, value] : json_->items()) out.push_back(key);
  return out;
}

std::string Value::text() const {
  if (!json_->is_string()) wrong("is no text");
  return json_->get<std::string>();
}

int64_t Value::whole(int64_t least, int64_t most) const {
  const bool fits =
      json_->is_number_integer() && (!json_->is_number_unsigned() ||
                                     json_->get<uint64_t>() <= std::numeric_limits<int64_t>::max());
  const int64_t value = fits ? json_->get<int64_t>() : 0;
  if (!fits || value < least || value > most)
    wrong(fmt::format("is no whole number from {} to {}", least, most));
  return value;
}

double Value::real(double least, double most) const {
  const double value = json_->is_number() ? json_->get<double>() : least - 1;
  if (!(value >= least && value <= most))
    wrong(fmt::format("is no number from {} to {}", least, most));
  return value;
}

bool Value::flag() const {
  if (!json_->is_boolean()) wrong("is neither true nor false");
  return json_->get<bool>();
}

uint64_t Value::bits(int count) const {
  const std::string all = text();
  uint64_t value = 0;
  const char* const end = all.data() + all.size();
  const bool prefixed = all.starts_with("0x");
  const auto [after, error] = std::from_chars(all.data() + (prefixed ? 2 : 0), end, value, 16);
  if (!prefixed || error != std::errc() || after != end || (count < 64 && value >> count != 0))
    wrong(fmt::format("is no hexadecimal number of {} bits in text, as \"0x1f\"", count));
  return value;
}

Bdf Value::bdf() const {
  const auto parsed = parse_bdf(text());
  if (!parsed) wrong("is no PCI address, as \"0000:1b:00.0\"");
  return *parsed;
}

// JSON can hold no text that is not Unicode; printable() keeps two such texts apart.
Json plain(const std::string& value) { return is_utf8(value) ? value : printable(value); }
Json plain(double value) { return value; }
Json plain(int value) { return value; }
Json plain(bool value) { return value; }
Json plain(uint32_t value) { return fmt::format("0x{:06x}", value); }  // a PCI class
Json plain(uint64_t value) { return fmt::format("0x{:016x}", value); }
Json plain(const Bdf& value) { return to_text(value); }
Json plain(Bandwidth value) { return value.bytes_per_second; }
Json plain(Seconds value) { return value.count(); }
Json plain(const CpuModel& value) {
  return {{"arch", plain(value.arch)},
          {"vendor", plain(value.vendor)},
          {"family", value.family},
          {"model", value.model}};
}
Json plain(const PciIds& value) {
  const auto id = [](uint16_t bits) { return fmt::format("0x{:04x}", bits); };
  return {{"vendor", id(value.vendor)},
          {"device", id(value.device)},
          {"subsystem_vendor", id(value.subsystem_vendor)},
          {"subsystem_device", id(value.subsystem_device)}};
}
Json plain(const FabricClique& value) {
  return {{"cluster", plain(value.cluster)}, {"clique", value.clique}};
}
Json plain(const std::vector<Gid>& value) {
  Json out = Json::array();
  for (const Gid& gid : value)
    out.push_back(
        {{"index", gid.index}, {"address", plain(gid.address)}, {"type", plain(gid.type)}});
  return out;
}

void read(const Value& from, std::string& to) { to = from.text(); }
void read(const Value& from, double& to) { to = from.real(0, kMostReal); }
void read(const Value& from, int& to) { to = static_cast<int>(from.whole(0, INT32_MAX)); }
void read(const Value& from, bool& to) { to = from.flag(); }
void read(const Value& from, uint32_t& to) { to = static_cast<uint32_t>(from.bits(32)); }
void read(const Value& from, uint64_t& to) { to = from.bits(64); }
void read(const Value& from, Bdf& to) { to = from.bdf(); }
void read(const Value& from, Bandwidth& to) {
  to.bytes_per_second = from.real(0, kMostBytesPerSecond);
}
void read(const Value& from, Seconds& to) { to = Seconds(from.real(0, kMostSeconds)); }
void read(const Value& from, CpuModel& to) {
  to.arch = from.at("arch").text();
  to.vendor = from.at("vendor").text();
  read(from.at("family"), to.family);
  read(from.at("model"), to.model);
}
void read(const Value& from, PciIds& to) {
  const auto id = [&](std::string_view key) {
    return static_cast<uint16_t>(from.at(key).bits(16));
  };
  to = {id("vendor"), id("device"), id("subsystem_vendor"), id("subsystem_device")};
}
void read(const Value& from, FabricClique& to) {
  to.cluster = from.at("cluster").text();
  to.clique = static_cast<uint32_t>(from.at("clique").whole(0, UINT32_MAX));
}
void read(const Value& from, std::vector<Gid>& to) {
  for (const Value& gid : from.items()) {
    Gid& next = to.emplace_back();
    read(gid.at("index"), next.index);
    next.address = gid.at("address").text();
    next.type = gid.at("type").text();
  }
}

}  // namespace crosstie::json
