# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests that run the stock NCCL on emulated GPUs (rig/): what NCCL chooses and calls
# is real, times are not. Skips the test where there is none. Logs lie in $work.
rig=$builddir/tests/nccl/rig/ncclrig
if [ ! -x "$rig" ]; then
  why=$(sed -n "s/^have_nccl='no: \(.*\)'$/\1/p" "$builddir/config.log")
  echo "skipped: ${why:-a build with sanitizers}"
  exit 77
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/crosstie-nccl.XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT
export LD_LIBRARY_PATH=$builddir/plugin/nccl${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export NCCL_TUNER_PLUGIN=crosstie
unset NCCL_ALGO NCCL_PROTO NCCL_PROFILER_PLUGIN CROSSTIE_TUNER CROSSTIE_PROFILE CROSSTIE_CLASS_RULES CROSSTIE_PROFILE_LOG

failed=0
check() { # WHAT TEST...: the words after WHAT are a command
  local what=$1
  shift
  if "$@"; then
    echo "ok   $what"
  else
    echo "FAIL $what"
    failed=1
  fi
}

# run NAME NODES GPUS [VARIABLE=VALUE]... [-- OPTION...]: logs in $work/NAME
run() {
  local name=$1 nodes=$2 gpus=$3 variables=()
  shift 3
  while [ $# -gt 0 ] && [ "$1" != -- ]; do variables+=("$1") && shift; done
  shift
  env "${variables[@]}" timeout 250 "$rig" --nodes "$nodes" --gpus-per-node "$gpus" --timeout 240 \
    --factor 2 --min-bytes 1K --max-bytes 16M --logdir "$work/$name" ${rig_options-} "$@" >"$work/$name.out" 2>&1
  local rc=$?
  [ $rc = 0 ] && grep -qx 'unsupported calls 0' "$work/$name.out" && return
  echo "$name: ended with $rc"
  tail -5 "$work/$name.out"
  return 1
}

# What NCCL runs: "allreduce 65536 tree/ll", a line for each operation. It tells one rank's bytes of
# what is gathered or scattered, and tuners all ranks'.
ran() {
  sed -n 's/.*NCCL INFO \([A-Za-z]*\): \([0-9]*\) Bytes -> Algo \([A-Z0-9_]*\) proto \([A-Z0-9]*\).*/\1 \2 \3\/\4/p' \
    "$work/$1/rank0.log" | tr 'A-Z' 'a-z' |
    awk -v ranks="$(ls "$work/$1"/rank*.log | wc -l)" '/gather|scatter/ { $2 = sprintf("%d", $2 * ranks) } 1'
}
# What the tuner of a rank says it chose, in the same words.
chose() { # NAME RANK [VERB]
  sed -n "s/.*crosstie: \([a-z_]*\) \([0-9]*\) bytes: ${3:-chose} \([a-z0-9_\/]*\) .*/\1 \2 \3/p" \
    "$work/$1/rank$2.log" | tr -d _ | sed 's/nvlstree/nvls_tree/'
}
obeyed() { # every choice of the tuner's is what NCCL ran for that operation
  local choices
  choices=$(chose "$1" 0 | sort -u)
  [ -n "$choices" ] || { echo "  the tuner changed nothing" && return 1; }
  [ -z "$(comm -23 <(echo "$choices") <(ran "$1" | sort -u))" ]
}
same() { # both runs ran the same
  [ -n "$(ran "$1")" ] && [ "$(ran "$1")" = "$(ran "$2")" ]
}
differs() { ! same "$1" "$2"; }
agreed() { # NAME RANKS: the same decisions, of the same inputs, on all ranks
  local rank first
  first=$(grep -o 'crosstie: [a-z_]* [0-9]* bytes.*' "$work/$1/rank0.log")
  [ -n "$first" ] || return 1
  for ((rank = 1; rank < $2; rank++)); do
    [ "$(grep -o 'crosstie: [a-z_]* [0-9]* bytes.*' "$work/$1/rank$rank.log")" = "$first" ] || return 1
  done
}
said() { # NAME TIMES PATTERN, by rank 0; TIMES is a pattern too
  grep -cE "$3" "$work/$1/rank0.log" | grep -qx "$2"
}
