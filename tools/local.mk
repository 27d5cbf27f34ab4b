# SPDX-License-Identifier: Apache-2.0
# All of the command but its main.
noinst_LTLIBRARIES += tools/libcommand.la
tools_libcommand_la_SOURCES = \
  tools/bench.cc tools/bench.h tools/bench_allreduce.cc tools/bench_local.cc \
  tools/calibrate.cc tools/calibrate_report.cc tools/calibrate_report.h \
  tools/chart.h \
  tools/command.cc tools/command.h \
  tools/config.cc \
  tools/explain.cc tools/explain.h \
  tools/explain_plot.cc \
  tools/explain_text.cc \
  tools/output.cc \
  tools/system.cc tools/system.h \
  tools/this_host.cc tools/this_host.h \
  tools/topo.cc tools/topo.h \
  tools/topo_check.cc \
  tools/topo_diff.cc \
  tools/topo_make_xml.cc
if HAVE_CAIRO
tools_libcommand_la_SOURCES += tools/chart_cairo.cc
else
tools_libcommand_la_SOURCES += tools/chart_without.cc
endif
tools_libcommand_la_CPPFLAGS = \
  $(AM_CPPFLAGS) -I$(srcdir)/plugin $(IBVERBS_CFLAGS) $(CAIRO_CFLAGS)
tools_libcommand_la_LIBADD = $(CAIRO_LIBS)
tool_libs = tools/libcommand.la src/choice/libdecision.la src/choice/libncclchoice.la \
  src/cost/libfit.la src/cost/libsearch.la src/cost/libcost.la \
  src/api/libcrosstie.la src/libsettings.la src/runtime/libruntime.la \
  $(picture_libs) $(topology_libs)

bin_PROGRAMS += crosstie
crosstie_SOURCES = tools/main.cc
crosstie_LDADD = $(tool_libs)

# Prints the manual page from the command's own tables.
noinst_PROGRAMS += tools/manual
tools_manual_SOURCES = tools/manual.cc
tools_manual_LDADD = $(tool_libs)

EXTRA_DIST += tools/install-packages
