# SPDX-License-Identifier: Apache-2.0
# Programs end in .t and speak TAP; scripts end in .sh and pass, fail or skip as a whole.
TEST_EXTENSIONS = .t .sh
T_LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
T_LOG_COMPILER = $(SHELL) $(top_srcdir)/tests/unit/run-tap
AM_TESTS_ENVIRONMENT = \
  srcdir='$(abs_srcdir)'; builddir='$(abs_builddir)'; CC='$(CC)'; \
  SANITIZE_FLAGS='$(SANITIZE_FLAGS)'; export srcdir builddir CC SANITIZE_FLAGS;
EXTRA_DIST += tests/unit/run-tap

# For every test program: what the rooms' tests share.
test_cppflags = $(AM_CPPFLAGS) -I$(srcdir)/tests/unit
EXTRA_DIST += tests/unit/knobs.h tests/unit/tap.h
if HAVE_CRITERION
unit_cppflags = $(test_cppflags) $(CRITERION_CFLAGS)
unit_libs = $(CRITERION_LIBS)
else
TESTS += tests/unit/none.sh
endif

dist_check_SCRIPTS += tests/house.sh tests/install.sh tests/launch.sh tests/unit/none.sh
TESTS += tests/house.sh tests/install.sh tests/launch.sh
EXTRA_DIST += tests/run

include tests/unit/base/local.mk
include tests/unit/topology/local.mk
include tests/unit/schedule/local.mk
include tests/unit/transport/local.mk
include tests/unit/runtime/local.mk
include tests/accuracy/local.mk
include tests/unit/cost/local.mk
include tests/unit/choice/local.mk
include tests/unit/nccl/local.mk
include tests/fuzz/local.mk
include tests/golden/local.mk
include tests/hosts/local.mk
include tests/nccl/local.mk
include tests/rdma/local.mk

# What the thread sanitizer has a say on: the programs in which several threads meet.
# No others are built: check-TESTS by itself would ask for all.
threaded_tests = tests/nccl/threads.t tests/unit/transport/conformance.t \
  tests/unit/runtime/collective.t tests/unit/runtime/fault.t
check-threads: $(threaded_tests)
	$(MAKE) $(AM_MAKEFLAGS) TESTS='$(threaded_tests)' check_PROGRAMS= check_LTLIBRARIES= check_DATA= check-TESTS
.PHONY: check-threads
