#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Live discovery on PCIe trees that we draw ourselves, in a virtual machine: two NUMA nodes,
# switches two deep, NICs whose RDMA ports are soft-RoCE's. What it tells is the tree that was asked
# for, with each port at the NIC that it belongs to.
here=$srcdir/tests/rdma
[ -z "$SANITIZE_FLAGS" ] || {
  echo "skipped: a build with sanitizers, too slow on an emulated processor"
  exit 77
}
work=$(mktemp -d "${TMPDIR:-/tmp}/crosstie-pcie.XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT
failed=0
fail() { echo "FAIL $1" && failed=1; }

# look TREE: what the command tells on such a machine, in $work/json and $work/tree.
look() {
  "$here/run-in-vm" --timeout 240 --pcie "$1" -- sh -c '"$1" topo --json && echo && "$1" topo' \
    sh "$builddir/crosstie" >"$work/out" 2>"$work/err"
  local code=$?
  [ $code = 0 ] || cat "$work/out" "$work/err"
  [ $code != 77 ] || exit 77
  [ $code = 0 ] || { fail "exit code $code on $1" && exit 1; }
  sed '/^$/,$d' "$work/out" >"$work/json"
  sed '1,/^$/d' "$work/out" >"$work/tree"
}

# Rails 0 to 5, and a NIC with a network but no RDMA. The last rail's card is a PCI function
# itself; virtio's have the network device one step further down.
tree='0/a/rail 0/a/gpu 0/b/rail 0/rail 1/c/d/rail 1/c/d/gpu 1/c/e/gpu 1/c/e/nic 1/c/rail 1/f/rail-e1000e'
look "$tree"
cat "$work/tree"
"$builddir/tests/rdma/tree" "$tree" "$work/json" || fail "another tree than was asked for"

# The comparison is worth something: all of these are other trees.
for other in \
  "${tree/'0/b/rail'/0/a/rail}" \
  "${tree/'1/c/d/rail'/1/d/rail}" \
  "${tree/'0/rail 1/c/d/rail'/1/c/d/rail 0/rail}" \
  "${tree/'1/f/'/0/f/}" \
  "${tree/'1/c/e/gpu'/}" \
  "${tree/'1/c/e/nic'/1/c/e/rail}"; do
  ! "$builddir/tests/rdma/tree" "$other" "$work/json" >/dev/null || fail "taken for $other"
done
exit $failed
