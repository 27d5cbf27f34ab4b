#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The stock NCCL, without a tuner, decides as our model of it foretells: the graphs that it finds,
# what it takes each algorithm and protocol to cost, what it runs and on how many channels. On
# emulated GPUs (rig/), on which NCCL cannot tell that they are.
rig=$builddir/tests/nccl/rig
if [ ! -x "$rig/ncclrig" ]; then
  why=$(sed -n "s/^have_nccl='no: \(.*\)'$/\1/p" "$builddir/config.log")
  echo "skipped: ${why:-a build with sanitizers}"
  exit 77
fi
. "$srcdir/tests/nccl/known.sh"
work=$(mktemp -d "${TMPDIR:-/tmp}/crosstie-model.XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT
export NCCL_DEBUG_SUBSYS=GRAPH,TUNING,INIT
unset NCCL_ALGO NCCL_PROTO NCCL_TUNER_PLUGIN
failed=0

ask() { # NAME OPTION...: NCCL's log is $work/NAME/rank0.log
  local name=$1
  shift
  timeout 120 "$rig/ncclrig" "$@" --timeout 100 --logdir "$work/$name" >"$work/out" 2>&1 && return
  cat "$work/out"
  return 1
}
same() { # NAME NODES [MACHINE]
  local name=$1
  shift
  "$builddir/tests/nccl/model" "$work/$name/rank0.log" "$work/$name/topology.xml" "$@"
}

# Every size, as the ranks of these shapes see them.
for shape in "1 8" "2 8" "4 8" "3 2" "2 1" "1 4"; do
  set -- $shape
  echo "$1x$2:"
  ask "$1x$2" --nodes "$1" --gpus-per-node "$2" --coll allreduce,allgather,reducescatter \
    --factor 2 --min-bytes 1K --max-bytes 1G && same "$1x$2" "$1" || failed=1
  [ "$(grep -c ' Bytes -> ' "$work/$1x$2/rank0.log")" -ge 63 ] || { echo "not all ran" && failed=1; }
done

# Graphs and costs of other machines. A GPU without NVLinks in the file has none.
for file in "$srcdir"/tests/nccl/machines/*.xml; do
  capability=$(sed -n 's/.* sm="\([0-9]*\)".*/\1/p' "$file" | head -1)
  for nodes in 1 2 4; do
    name=$(basename "$file" .xml).$nodes
    echo "$name:"
    NCCLRIG_NVLINKS=0 NCCLRIG_CC=$capability NCCL_NET_PLUGIN=$rig/librignet.so \
      ask "$name" --machine "$file" --nodes "$nodes" --init-only && same "$name" "$nodes" || failed=1
  done
done

for machine in $(known); do
  written=$work/$machine.xml
  write_known "$machine" "$written" || failed=1
  capability=$(sed -n 's/.* sm="\([0-9]*\)".*/\1/p' "$written" | head -1)
  for nodes in 1 2; do
    echo "$machine.$nodes:"
    NCCLRIG_P2P=$(has_peers "$machine") NCCLRIG_NVLINKS=0 NCCLRIG_CC=$capability \
      NCCL_NET_PLUGIN=$rig/librignet.so \
      ask "$machine.$nodes" --machine "$written" --nodes "$nodes" --init-only &&
      same "$machine.$nodes" "$nodes" "$machine" || failed=1
  done
done

# The comparison is worth something: other jobs and machines are told apart.
differs() { # NAME NODES [SED-SCRIPT]
  sed "${3:-}" "$work/$1/topology.xml" >"$work/other.xml"
  ! "$builddir/tests/nccl/model" "$work/$1/rank0.log" "$work/other.xml" "$2" >/dev/null ||
    { echo "$1 is taken for itself on $2 nodes ${3:+after $3}" && failed=1; }
}
differs 4x8 3
differs 1x8 1 's/count="5"/count="4"/'
differs dgx-h100.2 2 's/speed="400000"/speed="200000"/'
differs pcie-only.2 2 's/AuthenticAMD/GenuineIntel/'
differs two-sockets-one-nic.1 1 's/modelid="85"/modelid="143"/'
exit $failed
