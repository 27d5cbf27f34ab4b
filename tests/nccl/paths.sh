#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The stock NCCL and we see the same paths on machines that we have drawn, and on those known by
# name. It is given each as the topology file of two nodes (on one it drops the NICs), and tells its
# paths in its log; and it finds the same in the file that we write of each.
rig=$builddir/tests/nccl/rig
if [ ! -x "$rig/ncclrig" ]; then
  why=$(sed -n "s/^have_nccl='no: \(.*\)'$/\1/p" "$builddir/config.log")
  echo "skipped: ${why:-a build with sanitizers}"
  exit 77
fi
. "$srcdir/tests/nccl/known.sh"
work=$(mktemp -d "${TMPDIR:-/tmp}/crosstie-paths.XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT
failed=0

# ask NAME FILE: NCCL's log is $work/NAME/rank0.log. A GPU without NVLinks in the file has none.
ask() {
  NCCLRIG_NVLINKS=0 NCCL_NET_PLUGIN=$rig/librignet.so NCCL_DEBUG_SUBSYS=GRAPH timeout 120 \
    "$rig/ncclrig" --machine "$2" --nodes 2 --init-only --timeout 60 --logdir "$work/$1" \
    >"$work/out" 2>&1 && return
  cat "$work/out"
  return 1
}
same() { # NAME FILE [MACHINE]
  local log=$work/$1/rank0.log
  shift
  "$builddir/tests/nccl/paths" "$log" "$@"
}

for file in "$srcdir"/tests/nccl/machines/*.xml; do
  name=$(basename "$file" .xml)
  echo "$name:"
  ask "$name" "$file" && same "$name" "$file" || failed=1
  echo "$name, as we write it:"
  written=$work/$name.xml
  "$builddir/crosstie" topo -i "$file" -o "$written" &&
    ask "$name.written" "$written" && same "$name.written" "$file" || failed=1
done

for name in $(known); do
  echo "$name:"
  written=$work/$name.xml
  write_known "$name" "$written" && NCCLRIG_P2P=$(has_peers "$name") ask "$name" "$written" &&
    same "$name" "$written" "$name" || failed=1
done

# The comparison is worth something: of these files NCCL's log tells otherwise.
differs() { # NAME SED-SCRIPT
  sed "$2" "$srcdir/tests/nccl/machines/$1.xml" >"$work/other.xml"
  ! same "$1" "$work/other.xml" >/dev/null || { echo "$1 is taken for itself after $2" && failed=1; }
}
differs dgx-h100 's/count="4"/count="3"/'
differs dgx-h100 's/subsystem_device="0x1003"/subsystem_device="0x2003"/'
differs pcie-only 's/gdr="0"/gdr="1"/'
differs two-sockets-one-nic 's/modelid="85"/modelid="143"/'
differs gh200 '/<c2c/d'
! same pcie-3090x8 "$work/pcie-3090x8.xml" >/dev/null || { echo "peers reach each other" && failed=1; }
exit $failed
