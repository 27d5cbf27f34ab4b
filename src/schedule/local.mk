# SPDX-License-Identifier: Apache-2.0
noinst_LTLIBRARIES += src/schedule/libschedule.la
src_schedule_libschedule_la_SOURCES = \
  src/schedule/atoms.cc src/schedule/atoms.h \
  src/schedule/happens_before.h \
  src/schedule/hierarchical.cc \
  src/schedule/prover.cc src/schedule/prover.h \
  src/schedule/ring.cc \
  src/schedule/ring_pass.cc src/schedule/ring_pass.h \
  src/schedule/schedule.cc src/schedule/schedule.h \
  src/schedule/site.h \
  src/schedule/slicer.cc src/schedule/slicer.h \
  src/schedule/stage.h \
  src/schedule/symbolic_memory.cc src/schedule/symbolic_memory.h \
  src/schedule/traffic.cc src/schedule/traffic.h \
  src/schedule/well_formed.cc src/schedule/well_formed.h
