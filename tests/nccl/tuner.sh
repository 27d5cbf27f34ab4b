#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The stock NCCL loads the tuner by its name, calls it and obeys it.
. "$srcdir/tests/nccl/on_rig.sh"

all='--coll allreduce,allgather,reducescatter,broadcast,reduce'
export CROSSTIE_PROFILE=dgx-h100
for shape in "1 2" "3 2" "4 2"; do
  set -- $shape
  name=$1x$2
  check "$name: runs with the tuner" run "$name" "$1" "$2" -- $all
  check "$name: loaded by name" said "$name" 1 'TUNER/Plugin: Using crosstie \(v5\)'
  check "$name: runs with the tuner off" run "$name.off" "$1" "$2" CROSSTIE_TUNER=off -- $all
  check "$name: NCCL runs what the tuner chose" obeyed "$name"
  check "$name: at least one size differs from NCCL alone" differs "$name" "$name.off"
  check "$name: all ranks chose the same of the same inputs" agreed "$name" $(($1 * $2))
done
check "no system is named: runs" run nameless 3 2 CROSSTIE_PROFILE= -- $all
check "no system is named: the rig's own is none that is known, and left alone" same nameless 3x2.off

# A DGX H100 as NCCL finds it, named by nobody.
"$builddir/crosstie" topo -i dgx-h100 -o "$work/dgx-h100.xml" || exit 99
on_h100() { # NAME [VARIABLE=VALUE]...
  run "$1" 1 8 NCCLRIG_NVLINKS=0 NCCLRIG_CC=90 NCCL_NET_PLUGIN="${rig%/*}/librignet.so" CROSSTIE_PROFILE= "${@:2}" \
    -- --machine "$work/dgx-h100.xml"
}
check "DGX H100: runs" on_h100 known
check "DGX H100: runs with the tuner off" on_h100 known.off CROSSTIE_TUNER=off
check "DGX H100: is known by NCCL's table" said known '[1-9][0-9]*' 'predicted on dgx-h100.*, whose times'
check "DGX H100: NCCL runs what the tuner chose" obeyed known
check "DGX H100: at least one size differs from NCCL alone" differs known known.off
check "DGX H100: all ranks chose the same of the same inputs" agreed known 8

check "shadow: runs" run shadow 4 2 CROSSTIE_TUNER=shadow -- $all
check "shadow: says what it would choose" test -n "$(chose shadow 0 'would choose')"
check "shadow: changes nothing" same shadow 4x2.off
for setting in NCCL_ALGO=ring NCCL_PROTO=simple; do
  check "$setting: runs" run user 3 1 $setting --
  check "$setting: the tuner says once that it stands aside" said user 1 "crosstie: tuner stands aside: $setting is set"
  check "$setting: the tuner says nothing else" said user 1 'crosstie: '
  rm -r "$work/user"
done
check "bad value: the job runs" run bad 3 2 CROSSTIE_TUNER=wild -- $all
check "bad value: a warning names it" said bad 1 "WARN crosstie: CROSSTIE_TUNER: 'wild' is none of off.shadow.act; the tuner stands aside"
check "bad value: NCCL's choice stands" same bad 3x2.off
printf 'schema = 2\n' >"$work/foreign.toml"
echo 'schema = [' >"$work/unreadable.toml"
mkfifo "$work/pipe.toml"
for fault in missing foreign unreadable pipe; do
  check "$fault profile: runs" run $fault 3 2 CROSSTIE_PROFILE="$work/$fault.toml" -- $all
  check "$fault profile: a warning names it" said $fault 1 "WARN crosstie: CROSSTIE_PROFILE: .*$fault.toml.*; NCCL's own choices stand on this rank, and must on all"
  check "$fault profile: NCCL's choices stand" same $fault 3x2.off
done
check "3 communicators of one node: run" run rounds1 1 2 -- --rounds 3
check "3 communicators of one node: each has its tuner" said rounds1 3 'crosstie: tuner act: '
check "3 communicators of 3 nodes: run" run rounds3 3 2 -- --rounds 3
check "3 communicators of 3 nodes: each has its tuner" said rounds3 3 'crosstie: tuner act: '
check "3 communicators of 3 nodes: same choices" \
  test "$(chose rounds3 0 | sort | uniq -c | awk '{ print $1 }' | sort -u)" = 3
exit $failed
