// SPDX-License-Identifier: Apache-2.0
#include "cost/facts_toml.h"

namespace crosstie {
namespace {

// Far above what is built: 18 links of NVLink 5 carry 900 gigabytes a second, NICs of 2026 1600
// gigabits, an NVLink domain holds 576 GPUs.
constexpr double kMostGigabytes = 1e5, kMostGigabits = 1e5;
constexpr uint32_t kMostDevices = 4096, kMostCapability = 1000;

class Reader : TomlValues {
 public:
  Result<SystemFacts> read(const toml::table& in) {
    allow(in, "a system",
          {"compute_capability", "gpu_link", "gpu_gigabytes", "gpus", "multicast", "cpu", "network",
           "nics", "nic_gigabits", "nics_behind_cpu"});
    read_gpus(in);
    if (in.contains("cpu")) facts_.cpu = spelled<CpuVendor>(in, "cpu");
    if (in.contains("network")) read_network(in);
    if (!status_) return tl::unexpected(status_.error());
    return facts_;
  }

 private:
  template <class Word>
  Word spelled(const toml::table& in, std::string_view key) {
    return word<Word>(need_one_of(in, key, strings<Word>())).value_or(Word{});
  }
  template <class Word>
  static std::array<std::string, Names<Word>::all.size()> strings() {
    std::array<std::string, Names<Word>::all.size()> all;
    std::ranges::copy(Names<Word>::all, all.begin());
    return all;
  }

  void read_gpus(const toml::table& in) {
    facts_.compute_capability = need_number<uint32_t>(in, "compute_capability", 0, kMostCapability);
    facts_.gpu_link = spelled<GpuLink>(in, "gpu_link");
    facts_.gpu_wire = gigabytes(need_number<double>(in, "gpu_gigabytes", 0.1, kMostGigabytes));
    facts_.gpus = need_number<uint32_t>(in, "gpus", 1, kMostDevices);
    if (in.contains("multicast")) facts_.multicast = need<bool>(in, "multicast");
  }

  void read_network(const toml::table& in) {
    facts_.network = spelled<Network>(in, "network");
    if (facts_.network == Network::none) return;
    facts_.nics = need_number<uint32_t>(in, "nics", 1, kMostDevices);
    facts_.nic_wire = gigabits(need_number<double>(in, "nic_gigabits", 0.1, kMostGigabits));
    if (in.contains("nics_behind_cpu")) facts_.nics_behind_cpu = need<bool>(in, "nics_behind_cpu");
  }

  SystemFacts facts_;
};

}  // namespace

Result<SystemFacts> read_facts(const toml::table& in) { return Reader().read(in); }

std::string write_facts(const SystemFacts& facts) {
  std::string out = fmt::format(
      "compute_capability = {}\ngpu_link = \"{}\"\ngpu_gigabytes = {}\ngpus = {}\n"
      "multicast = {}\ncpu = \"{}\"\n",
      facts.compute_capability, name(facts.gpu_link), facts.gpu_wire.bytes_per_second / 1e9,
      facts.gpus, facts.multicast, name(facts.cpu));
  if (facts.network == Network::none) return out;
  return out + fmt::format("network = \"{}\"\nnics = {}\nnic_gigabits = {}\nnics_behind_cpu = {}\n",
                           name(facts.network), facts.nics,
                           facts.nic_wire.bytes_per_second * 8 / 1e9, facts.nics_behind_cpu);
}

}  // namespace crosstie
