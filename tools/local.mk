# SPDX-License-Identifier: Apache-2.0
bin_PROGRAMS += crosstie
crosstie_SOURCES = \
  tools/command.h \
  tools/main.cc \
  tools/topo.cc
crosstie_CPPFLAGS = $(AM_CPPFLAGS) $(IBVERBS_CFLAGS)
crosstie_LDADD = $(topology_libs)
