// SPDX-License-Identifier: Apache-2.0
// NCCL's grammar for choosing devices by name (NCCL_SOCKET_IFNAME, NCCL_IB_HCA): "eth,ib" names
// that begin so, "=eth0" these names, "^docker" and "^=eth0" all but those; "mlx5_0:1" port 1 only.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace crosstie {

class NameFilter {
 public:
  explicit NameFilter(std::string_view text);  // empty allows all

  // Without a port the colon is part of a name, as in eth0:1.
  bool allows(std::string_view name, std::optional<uint32_t> port = {}) const;

 private:
  bool matches(std::string_view wanted, std::string_view name, std::optional<uint32_t> port) const;

  bool excludes_ = false, exact_ = false;
  std::vector<std::string> names_;
};

}  // namespace crosstie
