# SPDX-License-Identifier: Apache-2.0
if HAVE_CRITERION
check_PROGRAMS += tests/unit/base.t
TESTS += tests/unit/base.t
tests_unit_base_t_SOURCES = \
  tests/unit/base/finding_test.cc \
  tests/unit/base/name_filter_test.cc \
  tests/unit/base/options_test.cc \
  tests/unit/base/printable_test.cc \
  tests/unit/base/units_test.cc \
  tests/unit/base/words_test.cc
tests_unit_base_t_CPPFLAGS = $(unit_cppflags)
tests_unit_base_t_LDADD = src/base/libbase.la $(unit_libs)
endif
