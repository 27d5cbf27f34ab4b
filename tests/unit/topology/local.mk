# SPDX-License-Identifier: Apache-2.0
EXTRA_DIST += \
  tests/fake/nvml.h \
  tests/fake/sysfs.h \
  tests/fake/verbs.h \
  tests/unit/topology/leaves.dot \
  tests/unit/topology/machines.h \
  tests/unit/topology/mini.dot \
  tests/unit/topology/nccl_xml_texts.h \
  tests/unit/topology/one_host.h \
  tests/unit/topology/plan.h \
  tests/unit/topology/two-sockets.hwloc.xml
if HAVE_CRITERION
check_PROGRAMS += tests/unit/topology.t
TESTS += tests/unit/topology.t
tests_unit_topology_t_SOURCES = \
  tests/unit/topology/builder_test.cc \
  tests/unit/topology/check_test.cc \
  tests/unit/topology/cluster_test.cc \
  tests/unit/topology/cluster_toml_test.cc \
  tests/unit/topology/diff_test.cc \
  tests/unit/topology/domain_test.cc \
  tests/unit/topology/drawing_test.cc \
  tests/unit/topology/formats_test.cc \
  tests/unit/topology/gpu_kinds_test.cc \
  tests/unit/topology/host_names_test.cc \
  tests/unit/topology/hwloc_live_test.cc \
  tests/unit/topology/hwloc_test.cc \
  tests/unit/topology/json_test.cc \
  tests/unit/topology/live_test.cc \
  tests/unit/topology/matrix_test.cc \
  tests/unit/topology/nccl_xml_test.cc \
  tests/unit/topology/nccl_xml_traps_test.cc \
  tests/unit/topology/nvml_test.cc \
  tests/unit/topology/overlay_test.cc \
  tests/unit/topology/path_test.cc \
  tests/unit/topology/rails_test.cc \
  tests/unit/topology/shape_test.cc \
  tests/unit/topology/sysfs_test.cc \
  tests/unit/topology/validate_test.cc \
  tests/unit/topology/variation_test.cc \
  tests/unit/topology/verbs_test.cc
tests_unit_topology_t_CPPFLAGS = $(unit_cppflags) $(IBVERBS_CFLAGS)
tests_unit_topology_t_LDADD = $(picture_libs) $(topology_libs) src/topology/libshape.la $(unit_libs)
endif

check_PROGRAMS += tests/unit/topology/recorded_files.t
TESTS += tests/unit/topology/recorded_files.t
tests_unit_topology_recorded_files_t_SOURCES = tests/unit/topology/recorded_files.cc
tests_unit_topology_recorded_files_t_CPPFLAGS = $(test_cppflags)
tests_unit_topology_recorded_files_t_LDADD = $(topology_libs)

check_PROGRAMS += tests/unit/topology/recorded_hwloc.t
TESTS += tests/unit/topology/recorded_hwloc.t
tests_unit_topology_recorded_hwloc_t_SOURCES = tests/unit/topology/recorded_hwloc.cc
tests_unit_topology_recorded_hwloc_t_CPPFLAGS = $(test_cppflags)
tests_unit_topology_recorded_hwloc_t_LDADD = $(topology_libs)

check_PROGRAMS += tests/unit/topology/recorded_paths.t
TESTS += tests/unit/topology/recorded_paths.t
tests_unit_topology_recorded_paths_t_SOURCES = tests/unit/topology/recorded_paths.cc
tests_unit_topology_recorded_paths_t_CPPFLAGS = $(test_cppflags)
tests_unit_topology_recorded_paths_t_LDADD = $(topology_libs)
