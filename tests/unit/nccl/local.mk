# SPDX-License-Identifier: Apache-2.0
plugin_cppflags = -I$(srcdir)/plugin
plugin_libs = plugin/nccl/libplugin.la $(nccl_choice_libs)
if HAVE_CRITERION
check_PROGRAMS += tests/unit/nccl.t
TESTS += tests/unit/nccl.t
tests_unit_nccl_t_SOURCES = \
  tests/unit/nccl/outcome_log_test.cc \
  tests/unit/nccl/process_test.cc \
  tests/unit/nccl/tuner_test.cc
tests_unit_nccl_t_CPPFLAGS = $(unit_cppflags) $(plugin_cppflags)
tests_unit_nccl_t_LDADD = $(plugin_libs) $(unit_libs)
endif
