#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The house's rules. A room includes itself and the rooms named here, and nothing else of the
# project: one list, so that the design can be read from it.
cd "$srcdir" || exit 99
status=0

# room: the rooms it may include.
rules() {
  cat <<EOF
base:
driver: base
topology: base driver
schedule: base topology/shape
cost: base topology schedule
choice: base topology/shape schedule cost
plan: base topology schedule cost choice
memory: base driver
transport: base driver memory
runtime: base driver topology schedule cost choice memory transport
api: base driver topology schedule cost choice memory transport runtime settings
EOF
}

# What a file may include of the project, beside the public headers.
check_includes() { # NAME ALLOWED FILE...
  name=$1 allowed=$2
  shift 2
  for file; do
    for target in $(sed -n 's/^#include "\([^"]*\)".*/\1/p' "$file"); do
      ok=no
      for prefix in config crosstie $allowed; do
        case $target in "$prefix"/* | "$prefix".*) ok=yes ;; esac
      done
      [ $ok = yes ] || {
        echo "$file includes $target; $name may include: ${allowed:-nothing}"
        status=1
      }
    done
  done
}

sources() { find "$@" -name '*.h' -o -name '*.cc' | LC_ALL=C sort; }

while IFS=: read -r room allowed; do
  [ -d "src/$room" ] || continue
  check_includes "$room" "$room$allowed" $(sources "src/$room")
done <<EOF
$(rules)
EOF

# The plugin takes the rooms that decide; the benchmarks speak to the library as any user would.
check_includes plugin/nccl 'nccl base driver topology/shape schedule cost choice' $(sources plugin)
check_includes 'a benchmark' 'bench command base' $(sources tools | grep '^tools/bench')

# State of a process belongs to nobody but plugin/nccl/process.cc. Functions that are static have
# a parenthesis where variables have their end or their value.
if grep -nE '^ +(static|thread_local) [^(]*([={;]|\(["0-9])' \
  $(sources src plugin tools | grep -v '^plugin/nccl/process\.') |
  grep -vE 'static (inline )?(constexpr|const) '; then
  echo "no static locals: state has an owner"
  status=1
fi
if grep -nE '\b(get_?)?[iI]nstance\(\)' $(sources src plugin tools); then
  echo "no singletons: what is needed is handed down"
  status=1
fi

# Doors alone read the environment and write to the terminal.
if grep -rnE '\b(getenv|setenv|putenv)\(' src plugin; then
  echo "no room calls getenv: options are rows (base/options.h)"
  status=1
fi
if grep -rnE 'std::(cout|cerr)|\bf?printf\(|\bputs\(' src plugin --include='*.cc' --include='*.h' |
  grep -v 'snprintf'; then
  echo "rooms do not print"
  status=1
fi

# Every file of ours says its licence, and stays readable.
for file in $(find src plugin tools include tests bench -type f \( -name '*.cc' -o -name '*.h' \
  -o -name '*.c' -o -name '*.sh' -o -name '*.t' \) ! -path '*/.*' | LC_ALL=C sort); do
  head -n 2 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' || {
    echo "$file does not begin with its SPDX line"
    status=1
  }
  [ "$(wc -l <"$file")" -le 600 ] || {
    echo "$file is longer than 600 lines"
    status=1
  }
done
exit $status
