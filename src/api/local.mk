# SPDX-License-Identifier: Apache-2.0
lib_LTLIBRARIES += src/api/libcrosstie.la
src_api_libcrosstie_la_SOURCES = \
  src/api/crosstie.cc \
  src/api/options.h \
  src/api/process.cc src/api/process.h
src_api_libcrosstie_la_LIBADD = \
  src/libsettings.la src/runtime/libruntime.la src/transport/libtransport.la \
  src/memory/libmemory.la src/choice/libchoice.la src/schedule/libschedule.la \
  src/topology/libshape.la src/base/libbase.la -lpthread
src_api_libcrosstie_la_LDFLAGS = $(AM_LDFLAGS) -no-undefined \
  -version-info $(CROSSTIE_LIBTOOL_VERSION) \
  -Wl,--version-script=$(srcdir)/src/api/crosstie.map
EXTRA_src_api_libcrosstie_la_DEPENDENCIES = src/api/crosstie.map
EXTRA_DIST += src/api/crosstie.map
