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

// What a number may be.
struct Bounds {
  double least, most;
  bool is_real = false;    // others are whole to NCCL, which reads "0x10" as 16 and "010" as 8
  bool is_words = false;   // "16.0 GT/s PCIe" is 16, and "Gen4" tells nothing
  bool must_tell = false;  // if it is there: NCCL takes an empty one for 0, which means something
};

// What stands for "not known": sysfs writes "Unknown", NCCL nothing at all.
inline bool tells_nothing(std::string_view text) {
  return text.empty() || text.starts_with("Unknown");
}

// The class code of a PCI function, 24 bits. NCCL looks at how the text begins, so that "0x0302"
// will do, and writes "0x03" itself. None: it is no such code.
std::optional<uint32_t> parse_class(std::string_view text);
// As the kernel writes it.
std::string class_text(uint32_t code);

// Attributes of a node. One that tells nothing is no mistake, unless its bounds have it so.
class NcclXmlNumbers {
 public:
  explicit NcclXmlNumbers(const Lines& lines) : lines_(lines) {}

  std::optional<double> number(const pugi::xml_node& node, const char* attribute, Bounds bounds);
  int whole(const pugi::xml_node& node, const char* attribute, Bounds bounds, int otherwise = 0);
  // Of so many bits, in hexadecimal digits.
  uint64_t code(const pugi::xml_node& node, const char* attribute, int bits);
  uint64_t class_code(const pugi::xml_node& node, const char* attribute);
  Property<bool> flag(const pugi::xml_node& node, const char* attribute);

  const Status& status() const { return status_; }  // the first number that cannot be

 private:
  void mistake(const pugi::xml_node& node, const char* attribute, std::string_view what);

  const Lines& lines_;
  Status status_;
};

}  // namespace crosstie
