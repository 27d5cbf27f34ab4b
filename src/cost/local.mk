# SPDX-License-Identifier: Apache-2.0
noinst_LTLIBRARIES += src/cost/libcost.la
src_cost_libcost_la_SOURCES = \
  src/cost/nccl/costs.cc src/cost/nccl/costs.h \
  src/cost/nccl/graph.h \
  src/cost/nccl/model.cc src/cost/nccl/model.h \
  src/cost/nccl/release.cc src/cost/nccl/release.h
nodist_src_cost_libcost_la_SOURCES = data/nccl.cc
# Ranks may run builds for different CPUs and must still decide alike: no fused multiply-add.
src_cost_libcost_la_CXXFLAGS = $(AM_CXXFLAGS) -ffp-contract=off
