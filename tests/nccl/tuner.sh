#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The stock NCCL loads the tuner by its name, calls it and obeys it.
. "$srcdir/tests/nccl/on_rig.sh"

all='--coll allreduce,allgather,reducescatter,broadcast,reduce'
for shape in "1 2" "2 2" "3 2" "4 2"; do
  set -- $shape
  name=$1x$2
  check "$name: runs with the tuner" run "$name" "$1" "$2" -- $all
  check "$name: loaded by name" said "$name" 1 'TUNER/Plugin: Using crosstie \(v5\)'
  check "$name: runs with the tuner off" run "$name.off" "$1" "$2" CROSSTIE_TUNER=off -- $all
  if [ "$1" -gt 2 ]; then
    check "$name: NCCL runs what the tuner chose" obeyed "$name"
    check "$name: at least one size differs from NCCL alone" differs "$name" "$name.off"
    check "$name: all ranks chose the same of the same inputs" agreed "$name" $(($1 * $2))
  else
    check "$name: left alone on up to 2 nodes" same "$name" "$name.off"
  fi
done

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
check "3 communicators of one node: run" run rounds1 1 2 -- --rounds 3
check "3 communicators of one node: each has its tuner" said rounds1 3 'crosstie: tuner act: '
check "3 communicators of 3 nodes: run" run rounds3 3 2 -- --rounds 3
check "3 communicators of 3 nodes: each has its tuner" said rounds3 3 'crosstie: tuner act: '
check "3 communicators of 3 nodes: same choices" \
  test "$(chose rounds3 0 | sort | uniq -c | awk '{ print $1 }' | sort -u)" = 3
exit $failed
