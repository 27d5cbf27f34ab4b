# SPDX-License-Identifier: Apache-2.0
noinst_LTLIBRARIES += src/choice/libchoice.la
src_choice_libchoice_la_SOURCES = \
  src/choice/choice.h \
  src/choice/choose.cc src/choice/choose.h \
  src/choice/class_choice.cc src/choice/class_choice.h \
  src/choice/class_rules.cc src/choice/class_rules.h \
  src/choice/nccl_choice.cc src/choice/nccl_choice.h \
  src/choice/nccl_decision.cc src/choice/nccl_decision.h \
  src/choice/nccl_table.cc src/choice/nccl_table.h
nodist_src_choice_libchoice_la_SOURCES = data/classes.cc
# Ranks may run builds for different CPUs and must still choose alike: no fused multiply-add.
src_choice_libchoice_la_CXXFLAGS = $(AM_CXXFLAGS) -ffp-contract=off

# A decision laid open, which neither the library nor the plugin has a use for.
noinst_LTLIBRARIES += src/choice/libdecision.la
src_choice_libdecision_la_SOURCES = src/choice/decision.cc src/choice/decision.h
src_choice_libdecision_la_CXXFLAGS = $(AM_CXXFLAGS) -ffp-contract=off
