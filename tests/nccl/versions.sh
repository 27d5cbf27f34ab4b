#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The stock NCCL takes each version of the interfaces that it knows where no newer is offered, and
# obeys what that version chooses. Other releases: NCCLRIG_NCCL=FILE.
. "$srcdir/tests/nccl/on_rig.sh"
[ -z "${NCCLRIG_NCCL-}" ] || rig_options="--nccl $NCCLRIG_NCCL"
mkdir "$work/lib"
export LD_LIBRARY_PATH=$work/lib:$LD_LIBRARY_PATH

only() { # KIND TABLE SIZE: as libnccl-KIND-only.so
  ${CC:-cc} -shared -fPIC -DTABLE="$2" -DSIZE="$3" "$srcdir/tests/nccl/one_version.c" \
    -o "$work/lib/libnccl-$1-only.so" -ldl
}
probes() { # TABLE: whether this NCCL looks for it
  grep -aq "$1" "${NCCLRIG_NCCL:-$(sed -n "s/^NCCL_LIBRARY='\(.*\)'$/\1/p" "$builddir/config.log")}"
}

# Version 2 hears nothing of what may run: some of what it chose, and NCCL alone does not run, runs.
obeyed_blindly() {
  [ -n "$(comm -12 <(chose "$1" 0 | sort -u) <(ran "$1" | sort -u) | comm -23 - <(ran off | sort -u))" ]
}
export CROSSTIE_PROFILE=dgx-h100
check "off: runs" run off 4 2 CROSSTIE_TUNER=off -- --max-bytes 1M
for version in 2 3 4 5 6 7; do
  name=tuner$version table=ncclTunerPlugin_v$version
  probes $table || { echo "  this NCCL knows no $table" && continue; }
  only tuner $table $((version < 6 ? 32 : 40)) || exit 99
  check "tuner v$version: runs" run $name 4 2 NCCL_TUNER_PLUGIN=only -- --max-bytes 1M
  check "tuner v$version: is the one that NCCL took" said $name 1 "TUNER/Plugin: Using (crosstie \(v$version\)|tuner plugin crosstie)"
  check "tuner v$version: was made" said $name 1 'crosstie: tuner act: communicator .*8 ranks on 4 nodes'
  if [ -z "$(ran off)" ]; then
    echo "  this NCCL does not log what it runs"
  elif [ $version = 2 ]; then
    check "tuner v2: NCCL runs what it chose, where that may run" obeyed_blindly $name
  else
    check "tuner v$version: NCCL runs what it chose" obeyed $name
  fi
done

for version in 4 5 6; do
  name=profiler$version table=ncclProfiler_v$version
  probes $table || { echo "  this NCCL knows no $table" && continue; }
  only profiler $table 48 || exit 99
  check "profiler v$version: runs" run $name 2 1 NCCL_PROFILER_PLUGIN=only NCCL_TUNER_PLUGIN=crosstie \
    NCCL_DEBUG_SUBSYS=INIT,TUNING,PROFILE CROSSTIE_PROFILE_LOG="$work/$name.log.%p" -- --names mesh_tp:3 --max-bytes 64K
  check "profiler v$version: is the one that NCCL took" said $name 1 "PROFILER/Plugin: (Loaded crosstie \(v$version\)|loaded crosstie)"
  check "profiler v$version: hears the name" said $name 1 "crosstie: profiler: communicator .* is 'mesh_tp:3'"
  check "profiler v$version: each rank logs each collective" \
    test "$(cat "$work/$name".log.* | grep -c '"collective":"all_reduce"')" = 14
done
exit $failed
