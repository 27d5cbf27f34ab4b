# SPDX-License-Identifier: Apache-2.0
# How true the cost model is on published sweeps, where these are beside the sources.
check_PROGRAMS += tests/accuracy/evaluate
tests_accuracy_evaluate_SOURCES = \
  tests/accuracy/evaluate.cc \
  tests/accuracy/sweeps.cc tests/accuracy/sweeps.h
tests_accuracy_evaluate_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests/accuracy
tests_accuracy_evaluate_LDADD = src/cost/libfit.la src/cost/libsearch.la src/cost/libcost.la $(topology_libs)
dist_check_SCRIPTS += tests/accuracy/accuracy.sh
TESTS += tests/accuracy/accuracy.sh
EXTRA_DIST += tests/accuracy/systems.toml
