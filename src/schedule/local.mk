# SPDX-License-Identifier: Apache-2.0
noinst_LTLIBRARIES += src/schedule/libschedule.la
src_schedule_libschedule_la_SOURCES = \
  src/schedule/prover.h \
  src/schedule/schedule.h \
  src/schedule/slicer.h \
  src/schedule/traffic.h
