// SPDX-License-Identifier: Apache-2.0
// crosstie topo make-xml: a topology file for NCCL in a VM, from what the guest sees and an overlay
// that tells what the hypervisor hides.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "api/options.h"
#include "topo.h"
#include "topology/format/formats.h"
#include "topology/path.h"

namespace crosstie::tools {
namespace {

struct MakeXmlOptions {
  std::vector<std::string> inputs;
  std::string overlay;
  std::string output = "-";
  bool strict = false;
};

// Says what NCCL would have to take on trust.
class Concerns {
 public:
  explicit Concerns(const Log& log) : log_(log) {}

  template <class... A>
  void say(fmt::format_string<A...> text, A&&... a) {
    log_.warn("{}", fmt::format(text, std::forward<A>(a)...));
    any_ = true;
  }
  bool any() const { return any_; }

 private:
  const Log& log_;
  bool any_ = false;
};

// Whole GPUs and ports by what one knows them by in a file. Addresses of GPUs that nobody told are
// invented there; these go by their labels.
using Ends = std::map<std::string, uint32_t>;

Ends ends(const Machine& machine, const std::set<std::string>& unaddressed) {
  Ends found;
  for (uint32_t i = 0; i < machine.devices().size(); i++) {
    const Device& d = machine.devices()[i];
    const bool by_label = !d.identity.bdf || unaddressed.contains(d.label);
    if (d.kind == DeviceKind::gpu && !machine.is_part(d))
      found.emplace(by_label ? d.label : to_text(*d.identity.bdf), i);
    if (d.kind == DeviceKind::port)
      found.emplace(fmt::format("{}:{}", d.identity.name.empty() ? d.label : d.identity.name,
                                d.identity.number.value_or(0)),
                    i);
  }
  return found;
}

std::set<std::string> unaddressed_gpus(const Machine& machine) {
  std::set<std::string> labels;
  for (const Device& d : machine.devices())
    if (d.kind == DeviceKind::gpu && !d.identity.bdf) labels.insert(d.label);
  return labels;
}

bool differ(Bandwidth a, Bandwidth b) {
  constexpr double kRounding = 0.01;  // of rates in the file
  return std::abs(a.bytes_per_second - b.bytes_per_second) >
         kRounding * std::max(a.bytes_per_second, b.bytes_per_second);
}

// RCCL knows the rate of XGMI by the GPU's architecture, and NCCL makes nothing of it: there is no
// saying here what will be reckoned with.
bool tells_no_rate(const Machine& meant, const Path& want) {
  const bool direct = want.type == PathClass::nvl || want.type == PathClass::nvb;
  const auto is_xgmi = [](const Link& link) { return link.type == LinkType::xgmi; };
  return direct && std::ranges::any_of(meant.links(), is_xgmi);
}

// The file has no words for every rate: what it cannot say, NCCL assumes. Between CPUs it asks the
// CPU itself.
struct Rates {
  size_t unlike = 0;
  std::string first{};

  void compare(const std::string& from, const std::string& to, const Path& meant,
               const Path& written) {
    const Bandwidth want = meant.bandwidth, have = written.bandwidth;
    if (std::max(meant.type, written.type) >= PathClass::sys || !differ(want, have)) return;
    if (unlike++ == 0)
      first = fmt::format("{} to {}: {} by what was written, where {} was meant", from, to,
                          to_text(have), to_text(want));
  }
};

// What was written is read again: paths must be those of the Machine that was meant.
Status check_paths(const Machine& meant, const Machine& written, Concerns& concerns) {
  const Paths before(meant, Paths::View::physical), after(written, Paths::View::physical);
  const Paths nccl_before(meant, Paths::View::nccl), nccl_after(written, Paths::View::nccl);
  const auto unaddressed = unaddressed_gpus(meant);
  const Ends ends_before = ends(meant, unaddressed), ends_after = ends(written, unaddressed);
  if (ends_before.size() != ends_after.size())
    return fail(Code::internal, "{} GPUs and ports were written where {} were meant",
                ends_after.size(), ends_before.size());
  Rates rates;
  for (const auto& [from, a] : ends_before)
    for (const auto& [to, b] : ends_before) {
      const auto x = ends_after.find(from), y = ends_after.find(to);
      if (x == ends_after.end() || y == ends_after.end())
        return fail(Code::internal, "{} or {} is not in what was written", from, to);
      const Path want = before.between(a, b), have = after.between(x->second, y->second);
      if (want.type != have.type)
        return fail(Code::internal, "{} to {} is {} in what was written and was meant to be {}",
                    from, to, name(have.type), name(want.type));
      if (tells_no_rate(meant, want)) continue;
      rates.compare(from, to, nccl_before.between(a, b), nccl_after.between(x->second, y->second));
    }
  if (rates.unlike > 0) concerns.say("{} ({} such paths)", rates.first, rates.unlike);
  return {};
}

// Without a NIC beneath a common switch NCCL uses no GPUDirect RDMA.
void check_nearness(const Machine& machine, Concerns& concerns) {
  const Paths paths(machine, Paths::View::physical);
  const auto ports = machine.of_kind(DeviceKind::port);
  if (ports.empty()) return concerns.say("no NIC is in the file");
  std::vector<std::string> far;
  for (const uint32_t gpu : machine.of_kind(DeviceKind::gpu))
    if (std::ranges::all_of(
            ports, [&](uint32_t port) { return paths.between(gpu, port).type > PathClass::p2c; }))
      far.push_back(machine.devices()[gpu].label);
  if (!far.empty())
    concerns.say(
        "{}: no NIC beneath a common PCIe switch, so that NCCL uses no GPUDirect RDMA; "
        "tell the switches in an overlay",
        fmt::join(far, ", "));
}

// The overlay's own gaps are told as such, and those of sources hinder nobody.
bool weighs(const Machine& machine, const Gap& gap) {
  return !gap.assumed.empty() && std::ranges::find(machine.devices(), gap.device, &Device::label) !=
                                     machine.devices().end();
}

Result<Machine> whole_machine(const MakeXmlOptions& options, const Machine& guest,
                              Concerns& concerns) {
  if (options.overlay.empty()) return guest;
  const auto overlay = read_overlay_file(readable(options.overlay));
  if (!overlay) return pass(overlay);
  auto laid = lay_over(guest, *overlay);
  if (!laid) return pass(laid, options.overlay);
  for (const Bdf& bdf : laid->unmatched)
    concerns.say("{}: the guest has no device at {}", options.overlay, to_text(bdf));
  return std::move(laid->machine);
}

Result<std::string> checked_xml(const Machine& machine, Concerns& concerns) {
  auto written = write_nccl_xml(single_host(machine));
  if (!written) return pass(written);
  if (const Status same = check_paths(machine, *written->again.hosts[0].machine, concerns); !same)
    return pass(same);
  if (!written->left_out.empty()) concerns.say("{}", written->left_out);
  for (const Gap& gap : machine.gaps())
    if (weighs(machine, gap)) concerns.say("{}: {}", gap.device, gap.text());
  check_nearness(machine, concerns);
  return std::move(written->text);
}

int run(const MakeXmlOptions& options, const Session& session) {
  const auto library = read_options<LibraryOptions>(kLibraryOptions, session.environment);
  if (!library) return report(session, library.error());
  auto read = files_of(options.inputs);
  read.push_back(readable(options.overlay));
  const Status apart = expect_apart(options.output, read);
  if (!apart) return report(session, apart.error());
  const auto guest = look(options.inputs, session);
  if (!guest) return could_not_look(session, guest.error());
  if (guest->hosts.size() != 1)
    return report(
        session, Error{Code::invalid,
                       fmt::format("--input: {} hosts; the file is for one", guest->hosts.size())});
  Concerns concerns(session.log);
  const auto machine = whole_machine(options, *guest->hosts[0].machine, concerns);
  if (!machine) return could_not_look(session, machine.error());
  const auto text = checked_xml(*machine, concerns);
  if (!text) return could_not_look(session, text.error());
  if (concerns.any() && (options.strict || library->strict)) {
    session.log.error("nothing is written, as what is unsure counts as an error");
    return kFindings;
  }
  return deliver(session, options.output, *text, kClean);
}

}  // namespace

void add_topo_make_xml(CLI::App& topo, Session& session) {
  auto options = std::make_shared<MakeXmlOptions>();
  CLI::App* const verb = topo.add_subcommand(
      "make-xml", "Write a topology file for NCCL (NCCL_TOPO_FILE), as for a VM");
  add_input(*verb, options->inputs, "of one host");
  verb->add_option("--overlay", options->overlay,
                   "What the guest does not see, in TOML: PCIe switches with the addresses of GPUs "
                   "and NICs beneath them, NUMA nodes, link speeds, NVLinks; -: standard input")
      ->check(names_something());
  verb->add_option("-o,--output", options->output,
                   "Write to this file; default: -, standard output")
      ->check(names_something())
      ->check(of_suffix({".xml"}));
  verb->add_flag("--strict", options->strict,
                 "What would be a warning is an error, as with CROSSTIE_STRICT=1");
  verb->callback([options, &session] {
    auto read = options->inputs;
    read.push_back(options->overlay);
    read_standard_input_once(read);
    session.run = [options, &session] { return run(*options, session); };
  });
}

}  // namespace crosstie::tools
