#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The house's include rules: a room includes itself and the rooms named here, and nothing else of
# the project. One list, so that the design can be read from it.
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

while IFS=: read -r room allowed; do
  [ -d "src/$room" ] || continue
  for file in $(find "src/$room" -name '*.h' -o -name '*.cc' | LC_ALL=C sort); do
    for target in $(sed -n 's/^#include "\([^"]*\)".*/\1/p' "$file"); do
      case $target in
      config.h | crosstie/* | "$room"/*) continue ;;
      esac
      ok=no
      for prefix in $allowed; do
        case $target in "$prefix"/* | "$prefix".*) ok=yes ;; esac
      done
      [ $ok = yes ] || {
        echo "$file includes $target; $room may include:${allowed:- nothing}"
        status=1
      }
    done
  done
done <<EOF
$(rules)
EOF

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
for file in $(find src plugin tools include tests bench -type f \( -name '*.cc' -o -name '*.h' -o -name '*.c' \) | LC_ALL=C sort); do
  head -n 1 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' || {
    echo "$file does not begin with its SPDX line"
    status=1
  }
  [ "$(wc -l <"$file")" -le 600 ] || {
    echo "$file is longer than 600 lines"
    status=1
  }
done
exit $status
