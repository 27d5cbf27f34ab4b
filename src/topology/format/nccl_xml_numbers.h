// SPDX-License-Identifier: Apache-2.0
// The numbers of NCCL's topology XML, which are read here and nowhere else.
#pragma once
#include <pugixml.hpp>

#include "topology/device.h"

namespace crosstie {

// From offsets in a text to lines as editors count them.
class Lines {
 public:
  explicit Lines(std::string_view text);
  ptrdiff_t of(const pugi::xml_node& node) const;

 private:
  std::vector<ptrdiff_t> ends_;
};

// What a number may be at most.
struct Bounds {
  double least, most;
};

// What stands for "not known": sysfs writes "Unknown", NCCL nothing at all.
inline bool tells_nothing(std::string_view text) {
  return text.empty() || text.starts_with("Unknown");
}

// Attributes of a node. One that tells nothing is no mistake.
class NcclXmlNumbers {
 public:
  explicit NcclXmlNumbers(const Lines& lines) : lines_(lines) {}

  std::optional<double> number(const pugi::xml_node& node, const char* attribute, Bounds bounds);
  int whole(const pugi::xml_node& node, const char* attribute, Bounds bounds, int otherwise = 0);
  // Of so many bits, in hexadecimal digits.
  uint64_t code(const pugi::xml_node& node, const char* attribute, int bits);
  Property<bool> flag(const pugi::xml_node& node, const char* attribute);

  const Status& status() const { return status_; }  // the first number that cannot be

 private:
  void mistake(const pugi::xml_node& node, const char* attribute, std::string_view what);

  const Lines& lines_;
  Status status_;
};

}  // namespace crosstie
