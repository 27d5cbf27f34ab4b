# SPDX-License-Identifier: Apache-2.0
noinst_LTLIBRARIES += src/driver/libdriver.la
src_driver_libdriver_la_SOURCES = \
  src/driver/cuda.cc src/driver/cuda.h \
  src/driver/drivers.cc src/driver/drivers.h \
  src/driver/library.h \
  src/driver/nccl.cc src/driver/nccl.h \
  src/driver/nvml.cc src/driver/nvml.h \
  src/driver/verbs.cc src/driver/verbs.h
src_driver_libdriver_la_CPPFLAGS = $(AM_CPPFLAGS) $(IBVERBS_CFLAGS)
