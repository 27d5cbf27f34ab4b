// SPDX-License-Identifier: Apache-2.0
// The parameters of the model of our own: one row each, with what is known of it before any
// measurement. A profile (data/profiles) gives their fitted values.
//
// None is named after a system. Those named after a link, a network or a CPU say how much of its
// data-sheet rate, or what latency, that kind of link gives to NCCL.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/words.h"

namespace crosstie {

enum class Parameter : uint8_t {
  // Once for each operation, us.
  launch,
  launch_per_gpu,
  ll128_start,
  simple_start,
  tree_start,
  // A step between two GPUs of a node, us.
  ll_step,
  ll128_step,
  simple_step,
  tree_step,
  pcie_step,
  xgmi_step,
  amd_ll128_step,
  amd_tree_step,
  proxy_step,
  // A step between nodes, us.
  ll_network_step,
  ll128_network_step,
  simple_network_step,
  roce_step,
  efa_step,
  slingshot_step,
  sockets_step,
  tcpx_step,
  amd_network_step,
  rendezvous_step,
  rendezvous_bytes,
  // Shares of a wire's rate.
  ll_share,
  ll128_share,
  amd_ll128_share,
  nvlink2_share,
  nvlink3_share,
  nvlink4_share,
  nvlink5_share,
  pcie_share,
  xgmi_share,
  partitions_share,
  infiniband_share,
  efa_share,
  slingshot_share,
  sockets_share,
  tcpx_share,
  behind_cpu_share,
  // What a CPU's proxy thread reads of LL lines, GB/s.
  ll_proxy_intel,
  ll_proxy_amd,
  ll_proxy_arm,
  // Trees.
  tree_share,
  tree_network_share,
  amd_tree_share,
  tree_channel_sm80,
  tree_channel_sm90,
  tree_channel_sm100,
  // NVLS and its tree.
  multicast_start,
  multicast_nvlink4_share,
  multicast_nvlink5_share,
  multicast_echo,
  multicast_spread,
  multicast_tree_step,
  multicast_tree_share,
  multicast_wide_share,
  // How much of the chunks' latency is not hidden behind their bytes.
  ring_pipeline,
  tree_pipeline,
  multicast_pipeline,
  multicast_tree_pipeline,
  chain_pipeline,
  amd_pipeline,
  amd_overlap,
  pipeline_bytes,
  chain_steps,
};
constexpr size_t kParameters = static_cast<size_t>(Parameter::chain_steps) + 1;

enum class ParameterUnit : uint8_t { microseconds, share, gigabytes_per_second, bytes, count };
template <>
struct Names<ParameterUnit> {
  static constexpr std::array<std::string_view, 5> all = {"us", "share", "GB/s", "B", "count"};
};

// What is known before any measurement: a value and by which factor it may be off (one standard
// deviation), with where that comes from.
struct ParameterRow {
  std::string_view name;
  ParameterUnit unit;
  double expected;
  double factor;
  std::string_view meaning;
  std::string_view source;
};
const std::array<ParameterRow, kParameters>& parameter_rows();
// What physics allow: shares end at 1, those of protocols with flags below it.
double most(Parameter parameter);
inline const ParameterRow& row_of(Parameter parameter) {
  return parameter_rows()[static_cast<size_t>(parameter)];
}

// Values by parameter, in the rows' units.
class ParameterValues {
 public:
  static ParameterValues expected();

  double operator[](Parameter parameter) const { return values_[static_cast<size_t>(parameter)]; }
  double& operator[](Parameter parameter) { return values_[static_cast<size_t>(parameter)]; }
  const std::array<double, kParameters>& all() const { return values_; }
  std::array<double, kParameters>& all() { return values_; }

 private:
  std::array<double, kParameters> values_{};
};

}  // namespace crosstie
