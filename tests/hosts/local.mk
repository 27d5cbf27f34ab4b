# SPDX-License-Identifier: Apache-2.0
# Several hosts, drawn by network namespaces.
check_PROGRAMS += tests/hosts/vanish
tests_hosts_vanish_SOURCES = tests/hosts/vanish.cc tests/unit/transport/harness.cc \
  tests/unit/transport/party.h tests/unit/transport/suite.h
tests_hosts_vanish_CPPFLAGS = $(test_cppflags) -I$(srcdir)/tests/unit/transport
tests_hosts_vanish_LDADD = \
  src/transport/libtransport.la src/memory/libmemory.la src/base/libbase.la -lpthread
EXTRA_DIST += tests/hosts/hosts.sh
dist_check_SCRIPTS += tests/hosts/across.sh tests/hosts/lost.sh tests/hosts/vanish.sh
TESTS += tests/hosts/across.sh tests/hosts/lost.sh tests/hosts/vanish.sh
