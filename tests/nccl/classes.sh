#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# In the stock NCCL: communicators get their classes by their names, whatever else there is; what
# cannot be had is said in a line, and the job runs.
. "$srcdir/tests/nccl/on_rig.sh"
megatron=TENSOR_MODEL_PARALLEL_GROUP:0,DATA_PARALLEL_GROUP:1,PIPELINE_MODEL_PARALLEL_GROUP:2
three="--names $megatron --rounds 3"

# classes NAME [RANK]: those that a rank's tuner took, in order.
classes() {
  sed -n 's/.*crosstie: tuner act: .* class \([a-z]*\) by .*/\1/p' "$work/$1/rank${2-0}.log" | tr '\n' ' '
}
all_ranks_took() { # NAME RANKS CLASSES
  local rank
  for ((rank = 0; rank < $2; rank++)); do
    [ "$(classes "$1" $rank)" = "$3" ] || { echo "  rank $rank took '$(classes "$1" $rank)'" && return 1; }
  done
}
lines() { # NAME PATTERN: of all ranks
  cat "$work/$1"/rank*.log | grep -cE "$2"
}

export NCCL_PROFILER_PLUGIN=crosstie
check "Megatron's names: run" run megatron 2 2 -- $three
check "Megatron's names: give the classes on every rank" all_ranks_took megatron 4 "tp dp pp "
check "all at once: run" run together 2 2 -- $three --keep
check "all at once: give the same classes" all_ranks_took together 4 "tp dp pp "
check "no names: run" run nameless 2 2 --
check "no names: unknown" all_ranks_took nameless 4 "unknown "
check "tuner alone: runs" run tuner 2 2 NCCL_PROFILER_PLUGIN=none -- --names mesh_tp:0
check "tuner alone: hears no name" all_ranks_took tuner 4 "unknown "
check "net name alone: NCCL goes on with its own transports" \
  run net 2 1 NCCL_NET_PLUGIN=crosstie --
check "profiler alone: runs" run profiler 2 2 NCCL_TUNER_PLUGIN=none --

cat >"$work/rules.toml" <<'RULES'
schema = 1
[[rule]]
class = "ep"
names = ["DATA_PARALLEL_GROUP"]
ranks_per_node = "2-8"
[policy.ep]
channels = 1
RULES
check "the user's rules: run" run rules 2 2 CROSSTIE_CLASS_RULES="$work/rules.toml" -- $three
check "the user's rules: come first" all_ranks_took rules 4 "tp ep pp "
budget() { # the ranks' 16 MiB ran on one channel, where NCCL takes two
  [ "$(sed -n 's/.*AllReduce: 16777216 Bytes .*channel{Lo..Hi}={\(.*\)}.*/\1/p' "$work/rules/rank0.log" | tr '\n' ' ')" = "0..1 0..0 0..1 " ]
}
check "the user's rules: bound the channels of their class" budget

for fault in missing unreadable foreign pipe; do
  file=$work/$fault.toml
  case $fault in
    pipe) mkfifo "$file" ;;
    unreadable) echo 'schema = [' >"$file" ;;
    foreign) printf 'schema = 2\n[future]\n' >"$file" ;;
  esac
  check "$fault rules: run" run $fault 1 2 CROSSTIE_CLASS_RULES="$file" -- --names mesh_tp:0,mesh_dp:1 --rounds 2 --keep --max-bytes 1K
  check "$fault rules: one line a process says so" test "$(lines $fault 'WARN crosstie: CROSSTIE_CLASS_RULES: .*the built-in rules stand')" = 2
  check "$fault rules: the built-in ones stand" all_ranks_took $fault 2 "tp dp "
done
check "a log that cannot be written: runs" run nolog 1 2 CROSSTIE_PROFILE_LOG=/nowhere/log --
check "a log that cannot be written: a line says so" test "$(lines nolog 'WARN crosstie: CROSSTIE_PROFILE_LOG: /nowhere/log: .*outcomes are not logged')" = 2

# As where NCCL_DEBUG_SUBSYS is not set: a warning of ours passes every filter of subsystems.
check "NCCL_DEBUG=WARN alone: runs" run quiet 1 2 CROSSTIE_CLASS_RULES=/nowhere NCCL_DEBUG=WARN NCCL_DEBUG_SUBSYS=INIT,ENV --
check "NCCL_DEBUG=WARN alone: the warning is seen" test "$(lines quiet 'crosstie: CROSSTIE_CLASS_RULES')" = 2

# Two hundred of them: tests/nccl/threads.cc, as the rig takes a second for each.
check "several communicators of two ranks: run" run several 1 2 -- --names TENSOR_MODEL_PARALLEL_GROUP:0 \
  --rounds 6 --keep --max-bytes 1K
check "several communicators of two ranks: one class, one digest" \
  test "$(sed -n 's/.*crosstie: tuner act: .* \(2 ranks on.*\)/\1/p' "$work/several"/rank*.log | sort | uniq -c | awk '{ print $1 }')" = 12
exit $failed
