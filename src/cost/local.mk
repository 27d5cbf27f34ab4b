# SPDX-License-Identifier: Apache-2.0
# Ranks may run builds for different CPUs and must still decide alike: no fused multiply-add.
cost_cxxflags = $(AM_CXXFLAGS) -ffp-contract=off
noinst_LTLIBRARIES += src/cost/libcost.la
src_cost_libcost_la_SOURCES = \
  src/cost/bound.cc src/cost/bound.h \
  src/cost/facts_toml.cc src/cost/facts_toml.h \
  src/cost/model.cc src/cost/model.h \
  src/cost/parameters.cc src/cost/parameters.h \
  src/cost/prediction.h \
  src/cost/profile.cc src/cost/profile.h \
  src/cost/system_facts.h \
  src/cost/nccl/costs.cc src/cost/nccl/costs.h \
  src/cost/nccl/graph.h \
  src/cost/nccl/model.cc src/cost/nccl/model.h \
  src/cost/nccl/pair.h \
  src/cost/nccl/release.cc src/cost/nccl/release.h
nodist_src_cost_libcost_la_SOURCES = data/nccl.cc data/profiles.cc
src_cost_libcost_la_CXXFLAGS = $(cost_cxxflags)

# Reads machines: of what decides inside NCCL those that are built in alone.
noinst_LTLIBRARIES += src/cost/libsearch.la
src_cost_libsearch_la_SOURCES = \
  src/cost/known_systems.cc src/cost/known_systems.h \
  src/cost/nccl/graph_search.cc src/cost/nccl/graph_search.h \
  src/cost/nccl/search.cc src/cost/nccl/search.h \
  src/cost/nccl/system.cc src/cost/nccl/system.h \
  src/cost/nccl/walk.cc src/cost/nccl/walk.h \
  src/cost/system.cc src/cost/system.h \
  src/cost/system_facts.cc
src_cost_libsearch_la_CXXFLAGS = $(cost_cxxflags)

# Reads logs and fits to them: for the command and the tests alone.
noinst_LTLIBRARIES += src/cost/libfit.la
src_cost_libfit_la_SOURCES = \
  src/cost/calibration.cc src/cost/calibration.h \
  src/cost/fit.cc src/cost/fit.h \
  src/cost/health.cc src/cost/health.h \
  src/cost/logs.cc src/cost/logs.h \
  src/cost/measurements.cc src/cost/measurements.h \
  src/cost/nccl/limits.cc src/cost/nccl/limits.h \
  src/cost/nccl/log_lines.cc src/cost/nccl/log_lines.h \
  src/cost/nccl_tests.cc src/cost/nccl_tests.h \
  src/cost/nccl_tests_json.cc \
  src/cost/nccl_tests_text.cc \
  src/cost/outcomes.cc src/cost/outcomes.h
src_cost_libfit_la_CPPFLAGS = $(AM_CPPFLAGS) $(EIGEN_FLAGS)
src_cost_libfit_la_CXXFLAGS = $(cost_cxxflags)
