# SPDX-License-Identifier: Apache-2.0
# Benchmarks: built and run by hand (make bench/program && bench/program), never by the tests.
EXTRA_PROGRAMS = bench/program bench/topology
bench_program_SOURCES = bench/program.cc
bench_program_LDADD = src/schedule/libschedule.la src/topology/libshape.la src/base/libbase.la
bench_topology_SOURCES = bench/topology.cc
bench_topology_CPPFLAGS = $(AM_CPPFLAGS) $(IBVERBS_CFLAGS)
bench_topology_LDADD = $(tool_libs)
