// SPDX-License-Identifier: Apache-2.0
#include "topology/format/drawing.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>

#include <csignal>
#include <set>

#include "machines.h"
#include "topology/builder.h"
#include "topology/format/drawing_dot.h"
#include "topology/format/formats.h"

using namespace crosstie;
using namespace crosstie::test;

namespace {

// What stands in labels, between tags and as cells of tables.
uint32_t times_shown(const std::string& text, const std::string& label) {
  uint32_t count = 0;
  for (size_t at = text.find(label); at != std::string::npos; at = text.find(label, at + 1)) {
    const char before = text[at - 1], after = text[at + label.size()];
    count += (before == '>' || before == '<') && (after == '<' || after == '>' || after == ' ');
  }
  return count;
}

Topology one(const std::string& name) {
  auto topology = read_synthetic(name);
  cr_assert(topology.has_value());
  return std::move(*topology);
}

// `hosts` of a kind, their ports on one leaf for each rail.
Topology on_leaves(const std::string& hosts) {
  Topology out = one(hosts);
  const uint32_t ports = out.hosts[0].machine->count(DeviceKind::port);
  for (uint32_t rail = 0; rail < ports; rail++)
    out.leaves.push_back({fmt::format("leaf{}", rail), rail});
  for (Host& host : out.hosts)
    for (uint32_t rail = 0; rail < ports; rail++) host.leaves.push_back(rail);
  return out;
}

Topology odd_names() {
  Builder builder("\"<b>&\\\n\xff", "test");
  const uint32_t numa = builder.see({.kind = DeviceKind::numa, .identity = {.number = 0}});
  Device nic{.kind = DeviceKind::nic, .parent = numa, .identity = {.bdf = Bdf{0, 1, 0, 0}}};
  nic.model = known<std::string>("</TD>]\\\"", Provenance::file);
  Device port{.kind = DeviceKind::port, .parent = builder.see(nic)};
  port.identity.name = "e\"<&\\N>\n";
  builder.see(port);
  auto machine = std::move(builder).build();
  cr_assert(machine.has_value());
  return single_host(std::move(*machine));
}

// Empty where Graphviz is not built in, which the error must say.
std::string drawn(const Topology& topology, Picture picture) {
  const auto out = drawing(topology, picture);
  if (out) return *out;
  cr_assert(out.error().text.starts_with("built without Graphviz"), "%s", out.error().text.c_str());
  return {};
}

void expect_golden(const Topology& topology, const std::string& file) {
  const std::string text = dot_text(topology),
                    path = source_folder() + "/tests/unit/topology/" + file;
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  cr_assert(text == read_file(path), "not as in %s:\n%s", path.c_str(), text.c_str());
}

}  // namespace

Test(drawing, text_of_others_cannot_end_a_label_nor_a_string) {
  cr_assert(dot::html("a<b>&\"\\N\n") == "a&lt;b&gt;&amp;&quot;\\&#8203;N\\n");
  cr_assert(dot::quoted("a\"b\\&") == "\"a\\\"b\\\\&amp;\"");
}

Test(drawing, of_small_machines_is_as_it_was_looked_at) {
  expect_golden(*read_nccl_xml(read_file(golden("mini.xml")), "mini.xml"), "mini.dot");
  expect_golden(on_leaves("2x dgx-a100"), "leaves.dot");
}

Test(drawing, shows_every_device_once) {
  for (const char* name : {"dgx-h100", "dgx-a100"}) {
    const Topology topology = one(name);
    const std::string text = dot_text(topology);
    for (const Device& d : topology.hosts[0].machine->devices())
      cr_assert(times_shown(text, d.label) == 1, "%s: %s %u times", name, d.label.c_str(),
                times_shown(text, d.label));
  }
}

Test(drawing, gives_a_rail_one_colour_at_port_cable_and_leaf) {
  const std::string text = dot_text(on_leaves("4x dgx-h100"));
  const std::string colour(dot::rail_colour(3).fill);
  cr_assert(text.find(fmt::format("<B>leaf3</B><BR/><FONT POINT-SIZE=\"9\">rail 3</FONT>> "
                                  "fillcolor=\"{}\"",
                                  colour)) != std::string::npos);
  uint32_t cables = 0;
  for (size_t at = 0; (at = text.find("leaves3 -- host", at)) != std::string::npos; at++)
    cables += text.compare(text.find("color=", at) + 7, colour.size(), colour) == 0;
  cr_assert(cables == 4, "%u", cables);
}

Test(drawing, of_thousands_of_hosts_has_one_box_for_each_kind) {
  const std::string text = dot_text(on_leaves("2048x dgx-h100"));
  cr_assert(text.find("<B>2048 hosts of this kind: dgx-h100-[0-2047]</B>") != std::string::npos);
  cr_assert(text.find("label=\"2048x\"") != std::string::npos);
  cr_assert(text.size() < 16384, "%zu bytes", text.size());
}

Test(drawing, of_hosts_of_one_kind_says_that_it_is_of_several) {
  const auto shows = [](const std::string& hosts, const char* title) {
    const std::string text = dot_text(one(hosts));
    cr_expect(text.find(title) != std::string::npos, "%s: %s", hosts.c_str(), text.c_str());
  };
  shows("4x dgx-h100", "<B>4 hosts of this kind: dgx-h100-[0-3]</B>");
  shows("36x gb200-nvl72", "36 hosts of this kind: gb200-nvl72-[0-35], 2 NVLink domains");
  Topology named = one("2x dgx-h100");
  named.hosts[0].name = std::string(30, 'x'), named.hosts[1].name = std::string(30, 'y');
  cr_expect(dot_text(named).find("2 hosts of this kind: dgx-h100<") != std::string::npos);
}

Test(drawing, as_svg_holds_the_labels_as_text) {
  for (const char* name : {"dgx-h100", "dgx-a100"}) {
    const Topology topology = one(name);
    const std::string svg = drawn(topology, Picture::svg);
    if (svg.empty()) return;
    cr_assert(svg.starts_with("<?xml"));
    for (const Device& d : topology.hosts[0].machine->devices())
      cr_assert(times_shown(svg, d.label) >= 1, "%s", d.label.c_str());
  }
}

Test(drawing, as_png_is_a_png) {
  const std::string png = drawn(on_leaves("4x dgx-h100"), Picture::png);
  cr_assert(png.empty() || png.starts_with("\x89PNG\r\n"));
}

Test(drawing, of_odd_names_is_drawn) {
  const std::string svg = drawn(odd_names(), Picture::svg);
  cr_assert(svg.empty() || svg.find("e&quot;&lt;&amp;\\\u200bN&gt;\\n") != std::string::npos, "%s",
            svg.c_str());
}

Test(drawing, without_fonts_says_nothing_and_draws) {
  setenv("FONTCONFIG_FILE", "/nonexistent", 1);
  cr_redirect_stderr();
  const std::string svg = drawn(one("dgx-h100"), Picture::svg);
  cr_assert(svg.empty() || svg.find("gpu7") != std::string::npos);
  cr_assert_stderr_eq_str("");
}

// The kernel then tells nobody how the child ended: text of an error is no picture.
Test(drawing, of_which_nobody_knows_how_it_ended_is_an_error) {
  std::signal(SIGCHLD, SIG_IGN);
  const auto out = drawing(one("dgx-h100"), Picture::svg);
  cr_assert(!out, "%s", out->c_str());
}

Test(drawing, rails_of_one_colour_differ_by_their_dashes) {
  std::set<std::string> looks;
  for (uint32_t rail = 0; rail < 27; rail++)
    looks.insert(fmt::format("{}{}", dot::rail_colour(rail).fill, dot::rail_dashes(rail)));
  cr_assert(looks.size() == 27);
  cr_assert(dot::rail_cell(9, "").find("style=\"dashed\"") != std::string::npos);
}
