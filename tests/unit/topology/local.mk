# SPDX-License-Identifier: Apache-2.0
if HAVE_CRITERION
check_PROGRAMS += tests/unit/topology.t
TESTS += tests/unit/topology.t
tests_unit_topology_t_SOURCES = \
  tests/unit/topology/shape_test.cc
tests_unit_topology_t_CPPFLAGS = $(unit_cppflags)
tests_unit_topology_t_LDADD = src/topology/libshape.la src/base/libbase.la $(unit_libs)
endif
