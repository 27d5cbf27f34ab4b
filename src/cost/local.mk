# SPDX-License-Identifier: Apache-2.0
# Ranks may run builds for different CPUs and must still decide alike: no fused multiply-add.
cost_cxxflags = $(AM_CXXFLAGS) -ffp-contract=off
noinst_LTLIBRARIES += src/cost/libcost.la
src_cost_libcost_la_SOURCES = \
  src/cost/bound.cc src/cost/bound.h \
  src/cost/model.cc src/cost/model.h \
  src/cost/parameters.cc src/cost/parameters.h \
  src/cost/prediction.h \
  src/cost/profile.cc src/cost/profile.h \
  src/cost/system_facts.h \
  src/cost/nccl/costs.cc src/cost/nccl/costs.h \
  src/cost/nccl/graph.h \
  src/cost/nccl/model.cc src/cost/nccl/model.h \
  src/cost/nccl/release.cc src/cost/nccl/release.h
nodist_src_cost_libcost_la_SOURCES = data/nccl.cc data/profiles.cc
src_cost_libcost_la_CXXFLAGS = $(cost_cxxflags)

# What the plugin has no use for: reading facts from a topology, and fitting.
noinst_LTLIBRARIES += src/cost/libfit.la
src_cost_libfit_la_SOURCES = \
  src/cost/fit.cc src/cost/fit.h \
  src/cost/system_facts.cc
src_cost_libfit_la_CPPFLAGS = $(AM_CPPFLAGS) $(EIGEN_FLAGS)
src_cost_libfit_la_CXXFLAGS = $(cost_cxxflags)
