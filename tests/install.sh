#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is installed serves a user: the README's program, taken from its place there, compiles
# against it through pkg-config and reduces over four processes; the header stands alone in C and
# C++; the library exports what its version script names and needs nothing of NCCL or CUDA.
set -eu
unset CROSSTIE_TEST_EFFORT CROSSTIE_TEST_SEED  # no variables of the library
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
make -C "$builddir" -s install DESTDIR="$root" >"$root/log" 2>&1 || {
  cat "$root/log"
  exit 1
}
prefix=$(sed -n 's/^prefix = //p' "$builddir/Makefile")
export PKG_CONFIG_LIBDIR="$root$prefix/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$root"
export LD_LIBRARY_PATH="$root$prefix/lib"
flags=$(pkg-config --cflags --libs crosstie)

cd "$root"
sed -n '/^```c$/,/^```$/p' "$srcdir/README.md" | grep -v '^```' >sum.c
[ "$(wc -l <sum.c)" -le 34 ] || { echo "the README's program is no longer short"; exit 1; }
# shellcheck disable=SC2086
${CC:-cc} -std=c11 -Wall -Wextra -Werror sum.c -o sum ${SANITIZE_FLAGS-} $flags

for rank in 0 1 2 3; do
  CROSSTIE_RANK=$rank CROSSTIE_RANKS=4 CROSSTIE_ADDRESS=127.0.0.1:$((20000 + $$ % 12000)) \
    timeout 60 ./sum >"out.$rank" 2>&1 &
done
wait
for rank in 0 1 2 3; do
  [ "$(cat "out.$rank")" = "rank $rank of 4: 10" ] || { echo "rank $rank said:"; cat "out.$rank"; exit 1; }
done

for language in c c++; do
  echo '#include <crosstie/crosstie.h>' |
    ${CC:-cc} -x $language -Wall -Wextra -Werror -pedantic -fsyntax-only $(pkg-config --cflags crosstie) -
done

library=$LD_LIBRARY_PATH/libcrosstie.so
nm -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort >exported
sed -n 's/^    \(crosstie_[a-z_]*\);$/\1/p' "$srcdir/src/api/crosstie.map" | sort >promised
diff promised exported || { echo "the library does not export what crosstie.map names"; exit 1; }
if readelf -d "$library" | grep NEEDED | grep -E 'nccl|cuda|nvidia|ibverbs|fmt'; then
  echo "these are to be opened at run time"
  exit 1
fi

# The plugin's names are one file, so that its halves share what they know.
for kind in tuner profiler net; do
  readlink -f "$LD_LIBRARY_PATH/libnccl-$kind-crosstie.so"
done | sort -u >plugins
[ "$(cat plugins)" = "$(readlink -f "$LD_LIBRARY_PATH/libnccl-tuner-crosstie.so")" ] ||
  { echo "the plugin's names are not one file:"; cat plugins; exit 1; }
