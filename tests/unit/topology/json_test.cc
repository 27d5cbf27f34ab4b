// SPDX-License-Identifier: Apache-2.0
// What is written as JSON is read back whole; what is not ours is refused with its place.
#include <criterion/criterion.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "topology/builder.h"
#include "topology/format/formats.h"

using namespace crosstie;

namespace {

// A machine with every field set, of one of each kind.
Device every_field(DeviceKind kind) {
  constexpr auto from = Provenance::driver;
  Device d{.kind = kind};
  d.model = known(std::string("M \"1\"\n"), from);
  d.cpu = known(CpuModel{"x86_64", "GenuineIntel", 6, 143}, from);
  d.pci_class = known(0x030200u, from);
  d.pci_ids = known(PciIds{0x10de, 0x2330, 0xffff, 0}, from);
  d.host_bridge = known(std::string("0000:16"), from);
  d.pcie_speed = known(32.0, from);
  d.pcie_lanes = known(16, from);
  d.pcie_speed_now = known(2.5, Provenance::measured);
  d.pcie_lanes_now = known(8, from);
  d.acs = known(true, from);
  d.index = known(3, from);
  d.compute_capability = known(90, from);
  d.nvlink_version = known(std::string("4.0"), from);
  d.fabric = known(FabricClique{"c0ffee", 7}, from);
  d.physical_function = known(Bdf{0, 0x17, 0, 1}, from);
  d.node_guid = known(UINT64_MAX, from);
  d.sys_image_guid = known(UINT64_MAX - 1, from);
  d.bond_members = known(2, from);
  d.link_layer = known(std::string("Ethernet"), from);
  d.carrier = known(false, from);
  d.line_rate = known(gigabits(400.0 / 3), from);
  d.latency = known(microseconds(1.0 / 3), from);
  d.mtu = known(4096, from);
  d.lid = known(65535, from);
  d.subnet_prefix = known(uint64_t{0xfe80} << 48, from);
  d.gids =
      known(std::vector<Gid>{{0, "fe80::1", "RoCE v1"}, {7, "::ffff:10.0.0.1", "RoCE v2"}}, from);
  d.rail = known(5, from);
  d.gpu_direct = known(true, Provenance::assumed);
  d.attributes = {{"net.maxconn", "131072"}, {"cpu.affinity", "ff,ff"}};
  d.elements = {"<foo bar=\"1\"/>"};
  return d;
}

Topology with_every_field() {
  Builder builder("every", "by hand");
  const uint32_t numa = builder.see(every_field(DeviceKind::numa));
  Device gpu = every_field(DeviceKind::gpu);
  gpu.parent = numa;
  gpu.identity = {.bdf = Bdf{0, 1, 0, 0}, .uuid = "GPU-1"};
  builder.gap(builder.see(gpu), "how wide its slot is", "x16", GapAbout::pcie_link);
  Device nic = every_field(DeviceKind::nic);
  nic.parent = numa;
  nic.identity = {.bdf = Bdf{0, 2, 0, 0}};
  Device port = every_field(DeviceKind::port);
  port.parent = builder.see(nic);
  port.identity = {.guid = 1, .number = 1, .name = "mlx5_0"};
  builder.see(port);
  Topology topology = single_host(*std::move(builder).build());
  topology.hosts[0].domain = "rack1";
  topology.hosts[0].leaves = {1};
  topology.hosts.push_back(topology.hosts[0]);
  topology.hosts[1].name = "other";
  topology.hosts[1].leaves = {kNoLeaf};
  topology.leaves = {{"leaf0", std::nullopt}, {"leaf1", 3}};
  return topology;
}

std::string error_of(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  cr_assert(at != std::string::npos, "no %s in it", std::string(from).c_str());
  const auto read = read_json(text.replace(at, from.size(), to));
  return read ? "none" : read.error().text;
}

}  // namespace

Test(json, every_field_comes_back_as_it_was) {
  const Topology was = with_every_field();
  const auto is = read_json(json_text(was));
  cr_assert(is.has_value(), "%s", is.error().text.c_str());
  cr_assert(is->hosts[0].machine == is->hosts[1].machine, "one kind of host was two");
  const Device& before = was.hosts[0].machine->devices()[1];
  const Device& after = is->hosts[0].machine->devices()[1];
  for_each_field([&](const auto& field) {
    cr_expect((before.*field.member).has_value(), "%s is not set in the test", field.name.data());
    cr_expect(before.*field.member == after.*field.member, "%s", field.name.data());
  });
  cr_expect(before.attributes == after.attributes && before.elements == after.elements);
  cr_expect(json_text(was) == json_text(*is));
}

Test(json, what_a_gap_is_about_comes_back_and_may_be_left_out) {
  const Topology was = with_every_field();
  cr_assert(was.hosts[0].machine->gaps()[0].about == GapAbout::pcie_link);
  std::string text = json_text(was);
  cr_expect(read_json(text)->hosts[0].machine->gaps()[0] == was.hosts[0].machine->gaps()[0]);
  const std::string about = ",\n   \"about\": \"pcie-link\"";
  const auto without = read_json(text.replace(text.find(about), about.size(), ""));
  cr_assert(without.has_value(), "%s", without ? "" : without.error().text.c_str());
  cr_expect(without->hosts[0].machine->gaps()[0].about == GapAbout::other);
}

Test(json, known_machines_come_back_as_they_were) {
  for (const KnownMachine& known : known_machines()) {
    const std::string text = json_text(*read_synthetic(fmt::format("3x {}", known.name)));
    const auto again = read_json(text);
    cr_assert(again.has_value(), "%s", again.error().text.c_str());
    cr_expect(json_text(*again) == text);
  }
}

Test(json, a_number_out_of_its_range_is_named_with_its_place) {
  const std::string text = json_text(with_every_field());
  const auto expect = [&](std::string_view from, std::string_view to, std::string_view error) {
    const std::string is = error_of(text, from, to);
    cr_expect(is == error, "%s", is.c_str());
  };
  expect("\"value\": 65535", "\"value\": 1e300",
         "devices[0].lid.value: is no whole number from 0 to 2147483647");
  expect("\"0x030200\"", "\"0x1ffffffff\"",
         "devices[0].pci_class.value: is no hexadecimal number of 32 bits in text, as \"0x1f\"");
  expect("\"machine\": 0", "\"machine\": -1", "hosts[0].machine: is no whole number from 0 to 0");
}

Test(json, what_no_machine_can_be_is_an_error) {
  const std::string text = json_text(with_every_field());
  for (const auto& [from, to] : std::initializer_list<std::pair<const char*, const char*>>{
           {"\"type\": \"port\"", "\"type\": \"numa\""},
           {"\"parent\": null", "\"parent\": 0"},
           {"\"count\": 1", "\"count\": 0"},
           {"\"count\": 1", "\"count\": 1e999"},
           {"\"schema\"", "\"scheme\""},
           {"\"leaves\": [\n    1", "\"leaves\": [\n    1, 1"},
           {"\"a\": 0", "\"a\": 99"}})
    cr_expect(error_of(text, from, to) != "none", "%s became %s", from, to);
}

Test(json, text_cut_anywhere_is_an_error_that_says_so) {
  const std::string text = json_text(with_every_field());
  for (size_t length = 0; length + 2 < text.size(); length += 37) {
    const auto read = read_json(std::string_view(text).substr(0, length));
    cr_expect(!read && read.error().text.ends_with("cut short"), "at %zu", length);
  }
}

Test(json, deep_nesting_is_refused) {
  cr_expect(!read_json(std::string(1000000, '[')));
  cr_expect(
      !read_json("{\"schema\": " + std::string(100000, '[') + std::string(100000, ']') + "}"));
}

Test(json, time_to_read_grows_no_faster_than_the_number_of_hosts) {
  const auto seconds = [](uint32_t hosts) {
    const std::string text = json_text(*read_synthetic(fmt::format("{}x dgx-h100", hosts)));
    const std::clock_t begin = std::clock();
    cr_assert(read_json(text)->hosts.size() == hosts);
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  const double few = seconds(10'000), eight_times_as_many = seconds(80'000);
  cr_assert(eight_times_as_many < 24 * few, "%g s after %g s", eight_times_as_many, few);
}

Test(json, depth_is_not_counted_in_text) {
  Topology topology = with_every_field();
  topology.hosts[0].name = "\"[[[[[[[[[[[[[[[[[[[[\\";
  cr_assert(read_json(json_text(topology))->hosts[0].name == topology.hosts[0].name);
}

Test(json, what_is_not_a_hosts_own_is_no_fact_of_its_units) {
  Topology topology = with_every_field();
  topology.hosts[0].units = {{.device = 1, .uuid = "GPU-2"}};
  const std::string text = json_text(topology);
  cr_assert(read_json(text).has_value());
  const auto expect = [&](const char* more, const char* about) {
    const std::string error =
        error_of(text, "\"device\": 1,", fmt::format("\"device\": 1, {},", more));
    cr_expect(error.find(about) != std::string::npos, "%s", error.c_str());
  };
  expect("\"mtu_bytes\": {\"value\": 1500, \"from\": \"file\"}", "mtu_bytes");
  expect("\"uuid\": \"GPU-3\"", "\"uuid\"");
  expect("\"attributes\": {\"net.maxconn\": \"1\"}", "net.maxconn");
}

// What is written again calls itself for each level.
Test(json, devices_nested_without_end_are_refused) {
  Machine::Parts parts = with_every_field().hosts[0].machine->parts();
  for (uint32_t i = 0; i < 1000; i++) {
    const auto next = static_cast<uint32_t>(parts.devices.size());
    Device d{.kind = DeviceKind::pci_switch, .parent = i == 0 ? 0 : next - 1};
    d.label = fmt::format("nested{}", i);
    parts.devices.push_back(d);
    parts.links.push_back(
        {d.parent, next, LinkType::pci, 1, known(gigabytes(1), Provenance::file)});
  }
  const auto read = read_json(json_text(single_host(Machine(std::move(parts)))));
  cr_assert(!read && read.error().text.find("nested more than") != std::string::npos, "%s",
            read ? "" : read.error().text.c_str());
}

Test(json, rails_are_told_with_the_gpus_that_they_serve) {
  const std::string text = json_text(*read_synthetic("2x dgx-h100"));
  const auto json = nlohmann::json::parse(text);
  cr_assert(json["machines"].size() == 1);
  const auto& rails = json["machines"][0]["rails"];
  const auto name_of = [&](const nlohmann::json& id) {
    return json["devices"][id.get<size_t>()]["name"];
  };
  size_t serving = 0;
  for (const auto& port : rails) {
    serving += port["gpus"].size();
    cr_assert(json["devices"][port["port"].get<size_t>()]["type"] == "port");
    cr_assert(port["gpus"].empty() == port["rail"].is_null());
    cr_assert(port["gpus"].empty() == port.contains("idle"));
  }
  cr_assert(serving == 8 && rails[0]["rail"] == 0 && name_of(rails[0]["gpus"][0]) == "gpu0");
  const auto again = read_json(text);
  cr_assert(again && json_text(*again) == text);
}

Test(json, rails_are_left_out_for_who_reads_it_back) {
  const Topology was = *read_synthetic("dgx-h100");
  const std::string text = json_text(was, JsonRails::none);
  cr_assert(text.find("\"rails\"") == text.npos && json_text(was).find("\"rails\"") != text.npos);
  cr_assert(json_text(*read_json(text)) == json_text(was));
}
