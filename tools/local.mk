# SPDX-License-Identifier: Apache-2.0
tool_sources = \
  tools/bench.cc tools/bench.h tools/bench_allreduce.cc tools/bench_local.cc \
  tools/command.cc tools/command.h \
  tools/config.cc

bin_PROGRAMS += crosstie
crosstie_SOURCES = tools/main.cc $(tool_sources)
crosstie_LDADD = src/api/libcrosstie.la src/libsettings.la src/base/libbase.la

EXTRA_DIST += tools/install-packages
