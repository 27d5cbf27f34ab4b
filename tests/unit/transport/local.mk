# SPDX-License-Identifier: Apache-2.0
# No Criterion here: its runner aborts under the thread sanitizer.
check_PROGRAMS += tests/unit/transport/conformance.t
TESTS += tests/unit/transport/conformance.t
tests_unit_transport_conformance_t_SOURCES = \
  tests/unit/transport/conformance.cc \
  tests/unit/transport/device_cases.cc \
  tests/unit/transport/ending_cases.cc \
  tests/unit/transport/harness.cc \
  tests/unit/transport/hostile_cases.cc \
  tests/unit/transport/lane_cases.cc \
  tests/unit/transport/meeting_cases.cc \
  tests/unit/transport/moving_cases.cc \
  tests/unit/transport/party.h \
  tests/unit/transport/strangers.h \
  tests/unit/transport/suite.h
tests_unit_transport_conformance_t_CPPFLAGS = $(test_cppflags)
tests_unit_transport_conformance_t_LDADD = \
  src/transport/libtransport.la src/memory/libmemory.la src/base/libbase.la -lpthread
