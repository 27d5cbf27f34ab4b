# SPDX-License-Identifier: Apache-2.0
noinst_LTLIBRARIES += src/memory/libmemory.la
src_memory_libmemory_la_SOURCES = \
  src/memory/buffer.cc src/memory/buffer.h \
  src/memory/reduce.cc src/memory/reduce.h
