#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# getCollInfo is on NCCL's launch path: its instructions are bounded, by callgrind's count; its time
# is reported. Twice as many calls less as many cost that many calls.
ask=$builddir/tests/nccl/ask
most=4500
unset CROSSTIE_PROFILE CROSSTIE_TUNER CROSSTIE_CLASS_RULES NCCL_ALGO NCCL_PROTO
echo "the system named:"
CROSSTIE_PROFILE=dgx-h100 $ask 200000 || exit 1
echo "to be known by the table:"
$ask 200000 || exit 1
if ! command -v valgrind >/dev/null || [ -n "${SANITIZE_FLAGS-}" ]; then
  echo "skipped: no valgrind, or a build with sanitizers"
  exit 77
fi
instructions() {
  valgrind --tool=callgrind --callgrind-out-file=/dev/null "$ask" "$1" 2>&1 |
    sed -n 's/.*Collected *: *\([0-9]*\).*/\1/p'
}
some=$(instructions 3300) twice=$(instructions 6600)
each=$(((twice - some) / 3300))
echo "$each instructions a call, of $most at most, the clock's and the table's included"
[ "$some" -gt 0 ] && [ "$each" -gt 0 ] && [ "$each" -le "$most" ]
