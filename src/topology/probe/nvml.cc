// SPDX-License-Identifier: Apache-2.0
// NVIDIA GPUs, their links and partitions as NVML tells them.
#include <algorithm>
#include <array>
#include <bit>

#include "topology/probe/seeing.h"

namespace crosstie::probe {
namespace {

constexpr Provenance kDriver = Provenance::driver;

using Text = std::array<char, kNvmlTextBytes>;

Bdf to_bdf(const NvmlPciInfo& info) {
  return {info.domain, static_cast<uint8_t>(info.bus), static_cast<uint8_t>(info.device), 0};
}

// Integrated GPUs have none, and NVSwitches in another tray: NVML then gives zeros or ones. PCI has
// 32 devices a bus, and at 0000:00:00.0 a host bridge.
bool is_address(const NvmlPciInfo& info) {
  return info.domain != ~0u && info.bus < 256 && info.device < 32 && to_bdf(info) != Bdf{};
}

// nvmlNvlinkVersion_t.
std::string_view version_name(unsigned version) {
  constexpr std::array<std::string_view, 9> kNames = {"",    "1.0", "2.0", "2.2", "3.0",
                                                      "3.1", "4.0", "5.0", "6.0"};
  return version < kNames.size() ? kNames[version] : "";
}

std::string_view refusal_name(NvmlP2pStatus status) {
  constexpr std::array<std::string_view, 7> kNames = {
      "",
      "the chipset does not support it",
      "the GPU does not support it",
      "it would cross an I/O hub that does not support it",
      "it is disabled in the driver's configuration",
      "it is not supported",
      "for no reason that NVML tells"};
  return kNames[std::clamp<size_t>(status, 1, kNames.size() - 1)];
}

// What ails the fabric: the fields of its health, NVML_GPU_FABRIC_HEALTH_MASK_*.
std::vector<std::string_view> ailments(unsigned health) {
  constexpr unsigned kIll = 1, kMisconfiguredAt = 8;
  constexpr std::array<std::string_view, 4> kNames = {
      "its bandwidth is degraded", "its routes are being recovered", "its routes are not healthy",
      "it recovers from accesses that timed out"};
  constexpr std::array<std::string_view, 8> kMisconfigured = {
      "",
      "",
      "the GPU's system GUID is wrong",
      "the serial number of the GPU's chassis is wrong",
      "the GPU is in no partition of it",
      "the GPU has too few NVLinks to it",
      "the GPU's firmware does not fit it",
      "the GPU's place in it is wrong"};
  std::vector<std::string_view> out;
  for (unsigned field = 0; field < kNames.size(); field++)
    if ((health >> 2 * field & 3) == kIll) out.push_back(kNames[field]);
  const unsigned wrong = health >> kMisconfiguredAt & 15;
  if (wrong > 1)
    out.push_back(wrong < kMisconfigured.size() ? kMisconfigured[wrong] : "it is set up wrongly");
  return out;
}

class NvidiaGpus {
 public:
  NvidiaGpus(Builder& builder, const Nvml& nvml) : builder_(builder), nvml_(nvml) {}
  void see();

 private:
  struct Gpu {
    NvmlDevice handle = nullptr;
    unsigned number = 0;  // NVML's
    uint32_t index = kNoDevice;
  };

  void see_gpu(unsigned number);
  Device describe(NvmlDevice handle) const;
  void place(const Gpu& gpu);
  void see_nvlinks(const Gpu& gpu);
  bool carries_peers(const Gpu& gpu, unsigned link) const;
  bool is_up(const Gpu& gpu, unsigned link) const;
  void note_version(const Gpu& gpu, unsigned link);
  NvmlRemote remote_type(const Gpu& gpu, unsigned link) const;
  void link_out(const Gpu& gpu, NvmlRemote type, const NvmlPciInfo& remote, uint32_t count);
  void link_to_cpu(const Gpu& gpu, const Builder::Bundle& bundle);
  void see_chip_to_chip(const Gpu& gpu);
  std::optional<unsigned> field(const Gpu& gpu, NvmlField field, unsigned link) const;
  void see_fabric(const Gpu& gpu);
  void doubt_fabric(const Gpu& gpu, std::string what);
  void join_fabric(const Gpu& gpu, const NvmlFabricInfo& info);
  void see_partitions(const Gpu& gpu);
  void see_partition(const Gpu& gpu, NvmlDevice partition, unsigned number);
  void see_refusals();
  uint32_t numa_of(uint32_t device) const;

  Builder& builder_;
  const Nvml& nvml_;
  std::vector<Gpu> gpus_;
};

void NvidiaGpus::see() {
  unsigned count = 0;
  const NvmlReturn result = nvml_.device_count(&count);
  if (result != kNvmlSuccess)
    return builder_.gap("NVML", fmt::format("does not list GPUs: {}", nvml_.error_string(result)));
  for (unsigned i = 0; i < count; i++) see_gpu(i);
  see_refusals();
}

void NvidiaGpus::see_gpu(unsigned number) {
  Gpu gpu{.number = number};
  NvmlPciInfo pci{};
  NvmlReturn result = nvml_.device_by_index(number, &gpu.handle);
  if (result == kNvmlSuccess) result = nvml_.pci_info(gpu.handle, &pci);
  if (result != kNvmlSuccess)
    return builder_.gap(fmt::format("NVML device {}", number),
                        fmt::format("does not answer: {}", nvml_.error_string(result)));
  Device seen = describe(gpu.handle);
  seen.label = fmt::format("gpu{}", number);
  seen.index = known(static_cast<int>(number), kDriver);
  if (is_address(pci)) seen.identity.bdf = to_bdf(pci);
  gpu.index = builder_.see(seen);
  gpus_.push_back(gpu);
  place(gpu);
  see_nvlinks(gpu);
  see_chip_to_chip(gpu);
  see_fabric(gpu);
  see_partitions(gpu);
}

Device NvidiaGpus::describe(NvmlDevice handle) const {
  Device gpu{.kind = DeviceKind::gpu};
  Text text{};
  if (nvml_.uuid(handle, text.data(), text.size()) == kNvmlSuccess) gpu.identity.uuid = text.data();
  text = {};
  if (nvml_.name(handle, text.data(), text.size()) == kNvmlSuccess)
    gpu.model = known(std::string(text.data()), kDriver);
  int major = 0, minor = 0;
  if (nvml_.compute_capability(handle, &major, &minor) == kNvmlSuccess)
    gpu.compute_capability = known(10 * major + minor, kDriver);
  return gpu;
}

uint32_t NvidiaGpus::numa_of(uint32_t device) const {
  while (device != kNoDevice && builder_.device(device).kind != DeviceKind::numa)
    device = builder_.device(device).parent;
  return device;
}

// Where the firmware does not say by which NUMA node a GPU sits (numa_node is -1), NVML may.
void NvidiaGpus::place(const Gpu& gpu) {
  if (!nvml_.memory_affinity || numa_of(gpu.index) != kNoDevice) return;
  constexpr unsigned kBits = 8 * sizeof(unsigned long);
  std::array<unsigned long, 1024 / kBits> nodes{};  // as many as Linux knows at most
  if (nvml_.memory_affinity(gpu.handle, nodes.size(), nodes.data(), 0) != kNvmlSuccess) return;
  const auto word = std::ranges::find_if(nodes, [](unsigned long w) { return w != 0; });
  if (word == nodes.end() || !std::has_single_bit(*word) ||
      std::any_of(word + 1, nodes.end(), [](unsigned long w) { return w != 0; }))
    return;
  const auto number =
      static_cast<uint32_t>((word - nodes.begin()) * kBits + std::countr_zero(*word));
  const uint32_t numa = builder_.numa(number);
  if (numa == kNoDevice) return;
  uint32_t outermost = gpu.index;
  while (builder_.device(outermost).parent != kNoDevice)
    outermost = builder_.device(outermost).parent;
  builder_.adopt(outermost, numa);
  builder_.gap(gpu.index, "the firmware does not tell its NUMA node",
               fmt::format("node {}, as NVML tells", number), GapAbout::numa_node);
}

// GPUs answer for links that they do not have; only those that are up count, and of these, as for
// NCCL, those that carry peer-to-peer traffic. That is asked first, as NCCL does: it may train the
// link.
void NvidiaGpus::see_nvlinks(const Gpu& gpu) {
  std::map<std::pair<NvmlRemote, Bdf>, std::pair<NvmlPciInfo, uint32_t>> ends;
  uint32_t without_peers = 0;
  for (unsigned link = 0; link < kNvmlMostLinks; link++) {
    const bool carries = carries_peers(gpu, link);
    if (!is_up(gpu, link)) continue;
    if (!carries) {
      without_peers++;
      continue;
    }
    note_version(gpu, link);
    NvmlPciInfo remote{};
    const NvmlReturn result = nvml_.nvlink_remote(gpu.handle, link, &remote);
    if (result != kNvmlSuccess) {
      builder_.gap(gpu.index,
                   fmt::format("an NVLink with an unknown end: {}", nvml_.error_string(result)),
                   "no such link", GapAbout::gpu_link);
      continue;
    }
    auto& [info, count] = ends[{remote_type(gpu, link), to_bdf(remote)}];
    info = remote;
    count++;
  }
  for (const auto& [key, end] : ends) link_out(gpu, key.first, end.first, end.second);
  if (without_peers > 0)
    builder_.gap(gpu.index,
                 fmt::format("{} of its NVLinks are up, but carry no peer-to-peer traffic; NCCL "
                             "leaves them out",
                             without_peers),
                 "no such links", GapAbout::gpu_link);
}

bool NvidiaGpus::carries_peers(const Gpu& gpu, unsigned link) const {
  unsigned has = 0;
  return nvml_.nvlink_capability(gpu.handle, link, kNvmlLinkP2p, &has) == kNvmlSuccess && has != 0;
}

// From Hopper on NCCL asks for a field instead, which the older call need not agree with. Drivers
// that do not tell the field are asked the older way.
bool NvidiaGpus::is_up(const Gpu& gpu, unsigned link) const {
  const auto& capability = builder_.device(gpu.index).compute_capability;
  if (capability && capability->value >= 90)
    if (const auto told = field(gpu, kNvmlNvlinkState, link)) return told == kNvmlEnabled;
  NvmlEnable state = kNvmlDisabled;
  return nvml_.nvlink_state(gpu.handle, link, &state) == kNvmlSuccess && state == kNvmlEnabled;
}

void NvidiaGpus::note_version(const Gpu& gpu, unsigned link) {
  unsigned version = 0;
  if (!nvml_.nvlink_version || builder_.device(gpu.index).nvlink_version ||
      nvml_.nvlink_version(gpu.handle, link, &version) != kNvmlSuccess)
    return;
  if (const auto name = version_name(version); !name.empty())
    builder_.merge(gpu.index, {.nvlink_version = known(std::string(name), kDriver)});
}

NvmlRemote NvidiaGpus::remote_type(const Gpu& gpu, unsigned link) const {
  NvmlRemote type = kNvmlRemoteUnknown;
  if (nvml_.nvlink_remote_type) nvml_.nvlink_remote_type(gpu.handle, link, &type);
  return type;
}

// Of an end that NVML does not name: one that is no device of this host is taken for an NVSwitch,
// as containers and VMs hide those.
void NvidiaGpus::link_out(const Gpu& gpu, NvmlRemote type, const NvmlPciInfo& remote,
                          uint32_t count) {
  const Builder::Bundle bundle{LinkType::nvlink, count};
  if (type == kNvmlRemoteNpu) return link_to_cpu(gpu, bundle);
  const DeviceKind kind = type == kNvmlRemoteGpu ? DeviceKind::gpu : DeviceKind::nvswitch;
  if (is_address(remote)) return builder_.link_to_address(gpu.index, to_bdf(remote), kind, bundle);
  if (kind == DeviceKind::gpu)
    return builder_.gap(gpu.index, "an NVLink to a GPU without a PCI address", "no such link",
                        GapAbout::gpu_link);
  Device elsewhere{.kind = kind};
  elsewhere.identity.name = "without a PCI address";
  builder_.link(gpu.index, builder_.see(elsewhere), bundle);
}

void NvidiaGpus::link_to_cpu(const Gpu& gpu, const Builder::Bundle& bundle) {
  const uint32_t numa = numa_of(gpu.index);
  if (numa != kNoDevice) return builder_.link(gpu.index, numa, bundle);
  builder_.gap(gpu.index,
               fmt::format("{} to its CPU, whose NUMA node is not known", name(bundle.type)),
               "no such link", GapAbout::gpu_link);
}

std::optional<unsigned> NvidiaGpus::field(const Gpu& gpu, NvmlField field, unsigned link) const {
  NvmlFieldValue value{};
  value.field = field;
  value.scope = link;
  if (!nvml_.field_values || nvml_.field_values(gpu.handle, 1, &value) != kNvmlSuccess ||
      value.result != kNvmlSuccess)
    return std::nullopt;
  return value.value.number;
}

// On Grace Hopper and its like.
void NvidiaGpus::see_chip_to_chip(const Gpu& gpu) {
  constexpr unsigned kMostLinks = 64;  // Hopper has 10, Blackwell 14
  const unsigned links = std::min(field(gpu, kNvmlC2cLinkCount, 0).value_or(0), kMostLinks);
  uint32_t count = 0;
  double megabytes = 0;
  for (unsigned link = 0; link < links; link++) {
    if (field(gpu, kNvmlC2cLinkStatus, link) != 1u) continue;
    count++;
    megabytes += field(gpu, kNvmlC2cLinkRate, link).value_or(0);
  }
  if (links > count)
    builder_.gap(gpu.index, fmt::format("of {} C2C links {} are up", links, count), "those",
                 GapAbout::gpu_link);
  if (count == 0) return;
  Property<Bandwidth> rate;
  if (megabytes > 0) rate = known(gigabytes(megabytes / 1000), kDriver);
  link_to_cpu(gpu, {LinkType::c2c, count, rate});
}

void NvidiaGpus::see_fabric(const Gpu& gpu) {
  NvmlFabricInfo info{};
  info.version = kNvmlFabricInfoVersion;
  if (!nvml_.fabric_info || nvml_.fabric_info(gpu.handle, &info) != kNvmlSuccess ||
      info.state == kNvmlFabricNone)
    return;
  if (const auto ills = ailments(info.health); !ills.empty())
    return doubt_fabric(gpu, fmt::format("its NVLink fabric is not healthy (mask {:#x}): {}",
                                         info.health, fmt::join(ills, ", ")));
  if (info.state != kNvmlFabricCompleted)
    return doubt_fabric(gpu, "its registration with the NVLink fabric is not completed");
  if (info.status != kNvmlSuccess)
    return doubt_fabric(gpu, fmt::format("its registration with the NVLink fabric failed: {}",
                                         nvml_.error_string(info.status)));
  join_fabric(gpu, info);
}

void NvidiaGpus::doubt_fabric(const Gpu& gpu, std::string what) {
  builder_.gap(gpu.index, std::move(what), "no NVLink to other hosts", GapAbout::fabric);
}

// "Completed" says too little: it is told, with a UUID of zeros, on hosts whose NVLinks end in the
// box.
void NvidiaGpus::join_fabric(const Gpu& gpu, const NvmlFabricInfo& info) {
  if (std::ranges::all_of(info.cluster, [](unsigned char byte) { return byte == 0; })) return;
  const std::string cluster = uuid_text(info.cluster);
  builder_.merge(gpu.index, {.fabric = known(FabricClique{cluster, info.clique}, kDriver)});
  builder_.gap(fmt::format("NVLink fabric {}", cluster),
               "that it reaches other hosts is told, not tried",
               "no common domain until memory of the other host was mapped");
}

void NvidiaGpus::see_partitions(const Gpu& gpu) {
  unsigned now = 0, pending = 0, most = 0;
  if (!nvml_.mig_mode || !nvml_.mig_count || !nvml_.mig_by_index ||
      nvml_.mig_mode(gpu.handle, &now, &pending) != kNvmlSuccess || now == 0 ||
      nvml_.mig_count(gpu.handle, &most) != kNvmlSuccess)
    return;
  for (unsigned i = 0; i < most; i++)
    if (NvmlDevice partition = nullptr;
        nvml_.mig_by_index(gpu.handle, i, &partition) == kNvmlSuccess)
      see_partition(gpu, partition, i);
}

// Its PCI address is the GPU's; what tells it apart is its UUID, and its place among its siblings,
// which is the same on other hosts.
void NvidiaGpus::see_partition(const Gpu& gpu, NvmlDevice partition, unsigned number) {
  Device seen = describe(partition);
  if (seen.identity.uuid.empty())
    return builder_.gap(gpu.index, fmt::format("its MIG device {} tells no UUID", number),
                        "no such device");
  seen.label = fmt::format("gpu{}-mig{}", gpu.number, number);
  seen.parent = gpu.index;
  seen.identity.bdf = builder_.device(gpu.index).identity.bdf;
  seen.identity.number = number;
  seen.compute_capability = builder_.device(gpu.index).compute_capability;
  builder_.see(seen);
}

void NvidiaGpus::see_refusals() {
  if (!nvml_.p2p_status) return;
  for (size_t a = 0; a < gpus_.size(); a++)
    for (size_t b = a + 1; b < gpus_.size(); b++)
      for (const NvmlP2pIndex index : {kNvmlP2pRead, kNvmlP2pWrite}) {
        NvmlP2pStatus status = kNvmlP2pOk;
        if (nvml_.p2p_status(gpus_[a].handle, gpus_[b].handle, index, &status) != kNvmlSuccess ||
            status == kNvmlP2pOk)
          continue;
        builder_.refuse(gpus_[a].index, gpus_[b].index,
                        fmt::format("NVML: {}", refusal_name(status)));
        break;
      }
}

}  // namespace

void see_nvidia_gpus(Builder& builder, const Nvml& nvml) { NvidiaGpus(builder, nvml).see(); }

}  // namespace crosstie::probe
