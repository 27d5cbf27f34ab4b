# SPDX-License-Identifier: Apache-2.0
# The Shape alone is what deciding and moving read of the topology.
noinst_LTLIBRARIES += src/topology/libshape.la
src_topology_libshape_la_SOURCES = src/topology/shape.cc src/topology/shape.h

noinst_LTLIBRARIES += src/topology/libtopology.la
src_topology_libtopology_la_SOURCES = \
  src/topology/assignment.cc src/topology/assignment.h \
  src/topology/builder.cc src/topology/builder.h \
  src/topology/builder_doubts.cc \
  src/topology/builder_finish.cc \
  src/topology/check.cc src/topology/check.h \
  src/topology/check_devices.cc \
  src/topology/check_links.cc \
  src/topology/check_machine.h \
  src/topology/cluster.cc src/topology/cluster.h \
  src/topology/device.h \
  src/topology/diff.cc src/topology/diff.h \
  src/topology/diff_pairing.cc src/topology/diff_pairing.h \
  src/topology/diff_text.cc \
  src/topology/diff_topology.cc \
  src/topology/domain.cc src/topology/domain.h \
  src/topology/format/cluster_toml.cc \
  src/topology/format/drawing.cc src/topology/format/drawing.h \
  src/topology/format/drawing_cluster.cc src/topology/format/drawing_cluster.h \
  src/topology/format/drawing_dot.cc src/topology/format/drawing_dot.h \
  src/topology/format/drawing_links.cc src/topology/format/drawing_links.h \
  src/topology/format/drawing_machine.cc src/topology/format/drawing_machine.h \
  src/topology/format/file.cc src/topology/format/file.h \
  src/topology/format/formats.h \
  src/topology/format/hwloc_xml.cc \
  src/topology/format/json.cc \
  src/topology/format/json_reader.cc \
  src/topology/format/json_values.cc src/topology/format/json_values.h \
  src/topology/format/machine_toml.cc \
  src/topology/format/mark.h \
  src/topology/format/matrix.cc \
  src/topology/format/nccl_xml.cc \
  src/topology/format/nccl_xml_host.cc src/topology/format/nccl_xml_host.h \
  src/topology/format/nccl_xml_numbers.cc src/topology/format/nccl_xml_numbers.h \
  src/topology/format/nccl_xml_schema.cc src/topology/format/nccl_xml_schema.h \
  src/topology/format/nccl_xml_spelling.cc src/topology/format/nccl_xml_spelling.h \
  src/topology/format/nccl_xml_writer.cc \
  src/topology/format/overlay_toml.cc \
  src/topology/format/paths.cc \
  src/topology/format/synthetic.cc \
  src/topology/format/toml.h \
  src/topology/format/tree.cc \
  src/topology/gpu_kinds.cc src/topology/gpu_kinds.h \
  src/topology/host_names.cc src/topology/host_names.h \
  src/topology/machine.cc src/topology/machine.h \
  src/topology/options.h \
  src/topology/overlay.cc src/topology/overlay.h \
  src/topology/path.cc src/topology/path.h \
  src/topology/path_class.h \
  src/topology/probe/bitmap.h \
  src/topology/probe/cuda.cc \
  src/topology/probe/hwloc_devices.cc src/topology/probe/hwloc_devices.h \
  src/topology/probe/hwloc_tree.cc src/topology/probe/hwloc_tree.h \
  src/topology/probe/live.cc src/topology/probe/live.h \
  src/topology/probe/nvml.cc \
  src/topology/probe/seeing.h \
  src/topology/probe/sysfs.cc \
  src/topology/probe/verbs.cc \
  src/topology/rails.cc src/topology/rails.h \
  src/topology/rates.cc src/topology/rates.h \
  src/topology/replay.cc src/topology/replay.h \
  src/topology/topology.h \
  src/topology/validate.cc \
  src/topology/variation.cc src/topology/variation.h \
  src/topology/xml.cc src/topology/xml.h
nodist_src_topology_libtopology_la_SOURCES = data/gpus.cc data/machines.cc
src_topology_libtopology_la_CPPFLAGS = \
  $(AM_CPPFLAGS) $(HWLOC_CFLAGS) $(PUGIXML_CFLAGS) $(IBVERBS_CFLAGS)
topology_libs = src/topology/libtopology.la src/driver/libdriver.la src/base/libbase.la \
  $(HWLOC_LIBS) $(PUGIXML_LIBS)

# Graphviz is for the command alone.
noinst_LTLIBRARIES += src/topology/libpicture.la
if HAVE_GRAPHVIZ
src_topology_libpicture_la_SOURCES = src/topology/format/drawing_render.cc
else
src_topology_libpicture_la_SOURCES = src/topology/format/drawing_without.cc
endif
src_topology_libpicture_la_CPPFLAGS = $(AM_CPPFLAGS) $(GRAPHVIZ_CFLAGS)
picture_libs = src/topology/libpicture.la $(GRAPHVIZ_LIBS)
