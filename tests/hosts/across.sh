#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What two hosts of two ranks put on their links in an AllReduce is what the Schedule says, and
# headers: the interfaces' own counters against the benchmark's columns.
. "$srcdir/tests/hosts/hosts.sh"
command=$builddir/crosstie
status=0
iterations=4 warmup=1
# Each row is measured out of place and in place, each with one call more for the check.
calls=$((2 * (iterations + warmup + 1)))
hosts 2

# start RANK: a rank of the job, on host RANK / 2, whose output is in rankRANK.
start() {
  on $(($1 / 2)) env RANK="$1" WORLD_SIZE=4 MASTER_ADDR="$(address 0)" MASTER_PORT=29500 \
    timeout 60 "$command" bench allreduce -b 4M -e 4M -n $iterations -w $warmup \
    -a "$algorithm" >"$folder/rank$1" 2>&1
}

# within NAME VALUE LEAST MOST
within() {
  if [ "$2" -ge "$3" ] && [ "$2" -le "$4" ]; then
    echo "ok: $1: $2 bytes, from $3 to $4"
  else
    echo "$1: $2 bytes, not from $3 to $4"
    status=1
  fi
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for algorithm in ring hierarchical; do
  before=$(($(sent_bytes 0) + $(sent_bytes 1)))
  for rank in 1 2 3; do start $rank & done
  start 0 || status=1
  wait
  on_links=$(($(sent_bytes 0) + $(sent_bytes 1) - before))
  scheduled=$(awk '$1 == 4194304 { print $NF }' "$folder/rank0")
  [ -n "$scheduled" ] || {
    cat "$folder"/rank*
    exit 1
  }
  grep -q "4 ranks on 2 hosts" "$folder/rank0" || status=1
  # At most a frame of 1514 bytes carries 1448: with acknowledgements 8 %. And 256 KiB for meeting,
  # signs of life and the benchmark's own sums.
  least=$((calls * scheduled))
  within "$algorithm" $on_links $least $((least * 108 / 100 + 262144))
  eval "$algorithm=\$on_links"
done
# 3/2 of the bytes: 2 * 3/4 of the message from each host, against 2 * 1/2.
within "ring against hierarchical" "$ring" $((hierarchical * 140 / 100)) $((hierarchical * 160 / 100))
exit $status
