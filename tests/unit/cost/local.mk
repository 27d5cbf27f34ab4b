# SPDX-License-Identifier: Apache-2.0
if HAVE_CRITERION
check_PROGRAMS += tests/unit/cost.t
TESTS += tests/unit/cost.t
tests_unit_cost_t_SOURCES = \
  tests/unit/cost/calibration_test.cc \
  tests/unit/cost/layouts.h \
  tests/unit/cost/logs_test.cc \
  tests/unit/cost/model_test.cc \
  tests/unit/cost/nccl_launch_test.cc \
  tests/unit/cost/nccl_model_test.cc \
  tests/unit/cost/nccl_release_test.cc \
  tests/unit/cost/nccl_search_test.cc \
  tests/unit/cost/profile_test.cc \
  tests/unit/cost/synthetic_log.h \
  tests/unit/cost/system_facts_test.cc
tests_unit_cost_t_CPPFLAGS = $(unit_cppflags)
tests_unit_cost_t_LDADD = src/cost/libfit.la src/cost/libsearch.la src/cost/libcost.la \
  $(topology_libs) $(unit_libs)
endif
