# SPDX-License-Identifier: Apache-2.0
# A machine drawn by QEMU, with RDMA devices in a PCIe tree of one's own.
check_PROGRAMS += tests/rdma/tree
tests_rdma_tree_SOURCES = tests/rdma/tree.cc
tests_rdma_tree_LDADD = src/base/libbase.la
dist_check_SCRIPTS += tests/rdma/pcie.sh
TESTS += tests/rdma/pcie.sh
EXTRA_DIST += tests/rdma/run-in-vm \
  tests/rdma/vm/init tests/rdma/vm/kernel.sh tests/rdma/vm/pcie.sh tests/rdma/vm/start
