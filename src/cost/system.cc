// SPDX-License-Identifier: Apache-2.0
#include "cost/system.h"

#include <algorithm>

#include "topology/domain.h"

namespace crosstie {
namespace {

// So many hosts of that kind in one NVLink domain, as one Machine.
Result<std::shared_ptr<const Machine>> fused(const std::shared_ptr<const Machine>& kind,
                                             uint32_t hosts) {
  if (hosts == 1) return kind;
  Topology topology;
  for (uint32_t i = 0; i < hosts; i++)
    topology.hosts.push_back({fmt::format("{}-{}", kind->name(), i), kind, "domain"});
  auto machine = fuse(topology, "domain");
  if (!machine) return pass(machine);
  return std::make_shared<const Machine>(std::move(*machine));
}

}  // namespace

Result<ModelledJob> model_job(const std::shared_ptr<const Machine>& kind, uint32_t hosts,
                              uint32_t gpus_per_host, const NcclRelease& release) {
  const uint32_t have = kind->count(DeviceKind::gpu);
  if (have == 0) return fail(Code::invalid, "{} has no GPU", kind->source());
  const uint32_t gpus = gpus_per_host == 0 ? have : gpus_per_host;
  if (gpus > have)
    return fail(Code::invalid, "{} has {} GPUs; {} are asked for", kind->name(), have, gpus);
  if (const size_t whole = kind->whole_gpus().size(); gpus > whole)
    return fail(Code::invalid,
                "{} has {} partitions of {} GPUs; at most {} of a host can be modelled, and {} are "
                "asked for",
                kind->name(), have, whole, whole, gpus);
  const uint32_t in_domain = std::clamp(kind->hosts_in_domain(), 1u, hosts);
  const auto node = fused(kind, in_domain), rest = fused(kind, std::max(1u, hosts % in_domain));
  if (!node) return pass(node);
  if (!rest) return pass(rest);
  const auto facts = facts_of(**node);
  if (!facts) return pass(facts);
  std::vector<NcclNodes> nodes{{node->get(), hosts / in_domain, in_domain * gpus}};
  if (hosts % in_domain != 0) nodes.push_back({rest->get(), 1, hosts % in_domain * gpus});
  const auto nccl = find_nccl_job(release, nodes);
  if (!nccl) return pass(nccl);
  return ModelledJob{*facts, {hosts * gpus, (hosts + in_domain - 1) / in_domain}, *nccl};
}

}  // namespace crosstie
