# SPDX-License-Identifier: Apache-2.0
noinst_LTLIBRARIES += src/choice/libchoice.la
src_choice_libchoice_la_SOURCES = \
  src/choice/choice.h \
  src/choice/choose.cc src/choice/choose.h
# Ranks may run builds for different CPUs and must still choose alike: no fused multiply-add.
choice_cxxflags = $(AM_CXXFLAGS) -ffp-contract=off
src_choice_libchoice_la_CXXFLAGS = $(choice_cxxflags)

# What is chosen inside NCCL.
noinst_LTLIBRARIES += src/choice/libncclchoice.la
src_choice_libncclchoice_la_SOURCES = \
  src/choice/class_choice.cc src/choice/class_choice.h \
  src/choice/class_rules.cc src/choice/class_rules.h \
  src/choice/nccl_decision.cc src/choice/nccl_decision.h \
  src/choice/nccl_ranking.cc src/choice/nccl_ranking.h \
  src/choice/nccl_table.cc src/choice/nccl_table.h
nodist_src_choice_libncclchoice_la_SOURCES = data/classes.cc
src_choice_libncclchoice_la_CXXFLAGS = $(choice_cxxflags)
nccl_choice_libs = src/choice/libncclchoice.la src/cost/libsearch.la src/cost/libcost.la \
  src/topology/libtopology.la src/driver/libdriver.la src/base/libbase.la

# A decision laid open, which neither the library nor the plugin has a use for.
noinst_LTLIBRARIES += src/choice/libdecision.la
src_choice_libdecision_la_SOURCES = src/choice/decision.cc src/choice/decision.h
src_choice_libdecision_la_CXXFLAGS = $(choice_cxxflags)
