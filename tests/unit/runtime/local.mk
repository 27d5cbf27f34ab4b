# SPDX-License-Identifier: Apache-2.0
if HAVE_CRITERION
check_PROGRAMS += tests/unit/runtime.t
TESTS += tests/unit/runtime.t
tests_unit_runtime_t_SOURCES = \
  tests/unit/runtime/health_test.cc \
  tests/unit/runtime/host_view_test.cc \
  tests/unit/runtime/job_test.cc \
  tests/unit/runtime/links_test.cc \
  tests/unit/runtime/once_per_host_test.cc \
  tests/unit/runtime/rendezvous_test.cc
tests_unit_runtime_t_CPPFLAGS = $(unit_cppflags)
tests_unit_runtime_t_LDADD = \
  src/runtime/libruntime.la src/transport/libtransport.la src/memory/libmemory.la \
  src/choice/libchoice.la src/schedule/libschedule.la src/topology/libshape.la \
  src/base/libbase.la $(unit_libs)
endif

# Real processes, through the C API.
check_PROGRAMS += tests/unit/runtime/collective.t tests/unit/runtime/fault.t
TESTS += tests/unit/runtime/collective.t tests/unit/runtime/fault.t
ranks_sources = tests/unit/runtime/ranks.cc tests/unit/runtime/ranks.h
tests_unit_runtime_collective_t_SOURCES = tests/unit/runtime/collective_test.cc $(ranks_sources)
tests_unit_runtime_collective_t_CPPFLAGS = $(test_cppflags)
tests_unit_runtime_collective_t_LDADD = src/api/libcrosstie.la src/base/libbase.la
tests_unit_runtime_fault_t_SOURCES = tests/unit/runtime/fault_test.cc $(ranks_sources)
tests_unit_runtime_fault_t_CPPFLAGS = $(test_cppflags)
tests_unit_runtime_fault_t_LDADD = src/api/libcrosstie.la src/base/libbase.la
