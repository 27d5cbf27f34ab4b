# SPDX-License-Identifier: Apache-2.0
noinst_LTLIBRARIES += src/runtime/libruntime.la
src_runtime_libruntime_la_SOURCES = \
  src/runtime/channel.cc src/runtime/channel.h \
  src/runtime/communicator.cc src/runtime/communicator.h \
  src/runtime/engine.cc src/runtime/engine.h \
  src/runtime/fields.h \
  src/runtime/health.cc src/runtime/health.h \
  src/runtime/host_view.cc src/runtime/host_view.h \
  src/runtime/job.cc src/runtime/job.h \
  src/runtime/links.cc src/runtime/links.h \
  src/runtime/once_per_host.cc src/runtime/once_per_host.h \
  src/runtime/options.h \
  src/runtime/progress.cc src/runtime/progress.h \
  src/runtime/rendezvous.cc src/runtime/rendezvous.h \
  src/runtime/team.cc src/runtime/team.h
