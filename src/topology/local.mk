# SPDX-License-Identifier: Apache-2.0
# The Shape alone is what deciding and moving read of the topology.
noinst_LTLIBRARIES += src/topology/libshape.la
src_topology_libshape_la_SOURCES = src/topology/shape.cc src/topology/shape.h
