#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A host is lost in the midst of a job: every rank on either side ends within the health bound and
# a little, with an error that names one on the other.
. "$srcdir/tests/hosts/hosts.sh"
command=$builddir/crosstie
status=0
hosts 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

for rank in 0 1 2 3; do
  {
    on $((rank / 2)) env RANK=$rank WORLD_SIZE=4 MASTER_ADDR="$(address 0)" MASTER_PORT=29500 \
      CROSSTIE_HEALTH_TIMEOUT=3s timeout 60 \
      "$command" bench allreduce -b 1M -e 1M -n 1000000 -a hierarchical
    echo "exit code $?"
  } >"$folder/rank$rank" 2>&1 &
done

# Until data has moved.
for _ in $(seq 300); do
  [ "$(sent_bytes 1)" -gt 4000000 ] && break
  sleep 0.1
done
cut 1
start=$(date +%s)
wait
took=$(($(date +%s) - start))
[ $took -le 8 ] || {
  echo "the ranks took $took s to end"
  status=1
}

# expect RANK OTHERS
expect() {
  if grep -q "rank $2 on host" "$folder/rank$1" && grep -q "exit code 3" "$folder/rank$1"; then
    echo "ok: rank $1: $(grep "rank $2 on host" "$folder/rank$1" | tail -n 1)"
  else
    echo "rank $1 has not named a rank $2:"
    cat "$folder/rank$1"
    status=1
  fi
}
expect 0 "[23]"
expect 1 "[23]"
expect 2 "[01]"
expect 3 "[01]"
exit $status
