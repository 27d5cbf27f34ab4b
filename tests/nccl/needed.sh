#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The plugin must load into any process that runs NCCL: it needs glibc (2.34 at most) and libgcc_s
# alone, exports what NCCL looks up and nothing else, and comes and goes without a trace.
plugin=$builddir/plugin/nccl/libnccl-tuner-crosstie.so
failed=0
expect() { # WHAT EXPECTED FOUND
  [ "$2" = "$3" ] && return
  echo "$1: expected '$2', found '$3'"
  failed=1
}

unset NCCL_ALGO NCCL_PROTO CROSSTIE_TUNER CROSSTIE_CLASS_RULES
"$builddir/tests/nccl/load" "$plugin" 3 || failed=1
expect "exported symbols" \
  "$(sed -n 's/^ *\(nccl[A-Za-z]*_v[0-9]*\);$/\1/p' "$srcdir/plugin/nccl/plugin.map" | sort | tr '\n' ' ' | sed 's/ $//')" \
  "$(nm -D --defined-only "$plugin" | awk '{ print $NF }' | sort | tr '\n' ' ' | sed 's/ $//')"

if readelf -d "$plugin" | grep -Eq 'lib(a|t|ub)san'; then
  echo "a sanitizer's build: what it needs is not asked"
  exit $failed
fi
# libm and ld-linux are glibc's.
expect "libraries beside glibc and libgcc_s" "" \
  "$(readelf -d "$plugin" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
    grep -Ev '^(libc|libm)\.so\.6$|^libgcc_s\.so\.1$|^ld-linux' | tr '\n' ' ')"
newest=$(readelf -VW "$plugin" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1)
expect "newest glibc version, or 2.34" GLIBC_2.34 \
  "$(printf '%s\nGLIBC_2.34\n' "$newest" | sort -V | tail -1)"
exit $failed
