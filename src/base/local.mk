# SPDX-License-Identifier: Apache-2.0
noinst_LTLIBRARIES += src/base/libbase.la
src_base_libbase_la_SOURCES = \
  src/base/deadline.h \
  src/base/digest.h \
  src/base/edit_distance.h \
  src/base/embedded.h \
  src/base/finding.cc src/base/finding.h \
  src/base/fmt.cc \
  src/base/handle.h \
  src/base/identity.cc src/base/identity.h \
  src/base/log.cc src/base/log.h \
  src/base/name_filter.cc src/base/name_filter.h \
  src/base/numbers.h \
  src/base/options.cc src/base/options.h \
  src/base/printable.cc src/base/printable.h \
  src/base/result.cc src/base/result.h \
  src/base/text.h \
  src/base/toml.h \
  src/base/units.cc src/base/units.h \
  src/base/words.h
