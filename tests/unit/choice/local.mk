# SPDX-License-Identifier: Apache-2.0
if HAVE_CRITERION
check_PROGRAMS += tests/unit/choice.t
TESTS += tests/unit/choice.t
tests_unit_choice_t_SOURCES = \
  tests/unit/choice/class_choice_test.cc \
  tests/unit/choice/class_rules_test.cc \
  tests/unit/choice/decision_test.cc \
  tests/unit/choice/nccl_agreement_test.cc \
  tests/unit/choice/nccl_decision_test.cc \
  tests/unit/choice/nccl_table_test.cc \
  tests/unit/choice/nccl_world.h
tests_unit_choice_t_CPPFLAGS = $(unit_cppflags)
tests_unit_choice_t_LDADD = \
  src/choice/libdecision.la $(nccl_choice_libs) $(unit_libs)
endif
