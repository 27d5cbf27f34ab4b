// SPDX-License-Identifier: Apache-2.0
#include "base/identity.h"

#include <unistd.h>

#include <cstdio>

namespace crosstie {

Result<Bdf> parse_bdf(std::string_view text) {
  // Besides digits sscanf would take blanks, signs and "0x".
  const bool plain = text.find_first_not_of("0123456789abcdefABCDEF:.") == text.npos;
  const std::string s(plain ? text : "");
  unsigned domain = 0, bus = 0, device = 0, function = 0;
  int used = 0;
  const bool full =
      std::sscanf(s.c_str(), "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &used) == 4;
  const bool is_short =
      !full && std::sscanf(s.c_str(), "%2x:%2x.%1x%n", &bus, &device, &function, &used) == 3;
  if ((!full && !is_short) || static_cast<size_t>(used) != s.size() || device > 0x1f ||
      function > 7)
    return fail(Code::invalid, "'{}' is not a PCI address; expected domain:bus:device.function",
                text);
  return Bdf{full ? domain : 0, static_cast<uint8_t>(bus), static_cast<uint8_t>(device),
             static_cast<uint8_t>(function)};
}

std::string to_text(const Bdf& b) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", b.domain, b.bus, b.device, b.function);
}

std::string host_name() {
  char name[256] = "";
  return gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "unknown-host";
}

}  // namespace crosstie
