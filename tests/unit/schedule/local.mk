# SPDX-License-Identifier: Apache-2.0
if HAVE_CRITERION
check_PROGRAMS += tests/unit/schedule.t
TESTS += tests/unit/schedule.t
tests_unit_schedule_t_SOURCES = \
  tests/unit/schedule/all_reduce_test.cc \
  tests/unit/schedule/mutants.cc tests/unit/schedule/mutants.h \
  tests/unit/schedule/prover_test.cc \
  tests/unit/schedule/reference_run.cc tests/unit/schedule/reference_run.h \
  tests/unit/schedule/shapes.cc tests/unit/schedule/shapes.h \
  tests/unit/schedule/slicer_test.cc
tests_unit_schedule_t_CPPFLAGS = $(unit_cppflags)
tests_unit_schedule_t_LDADD = \
  src/schedule/libschedule.la src/topology/libshape.la src/base/libbase.la $(unit_libs)
endif
