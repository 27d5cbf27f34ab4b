# SPDX-License-Identifier: Apache-2.0
tool_sources = \
  tools/bench.cc tools/bench.h tools/bench_allreduce.cc tools/bench_local.cc \
  tools/command.cc tools/command.h \
  tools/config.cc \
  tools/output.cc \
  tools/this_host.cc tools/this_host.h \
  tools/topo.cc tools/topo.h \
  tools/topo_make_xml.cc
tool_cppflags = $(AM_CPPFLAGS) $(IBVERBS_CFLAGS)
tool_libs = src/api/libcrosstie.la src/libsettings.la src/runtime/libruntime.la $(topology_libs)

bin_PROGRAMS += crosstie
crosstie_SOURCES = tools/main.cc $(tool_sources)
crosstie_CPPFLAGS = $(tool_cppflags)
crosstie_LDADD = $(tool_libs)

# Prints the manual page from the command's own tables.
noinst_PROGRAMS += tools/manual
tools_manual_SOURCES = tools/manual.cc $(tool_sources)
tools_manual_CPPFLAGS = $(tool_cppflags)
tools_manual_LDADD = $(tool_libs)

EXTRA_DIST += tools/install-packages
