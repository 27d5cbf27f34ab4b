#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the command as each NAME.test says and compares; one TAP line a case. A .test holds
#
#   # a comment: what the case is about
#   prepare: truncate -s 65M $tmp/large.xml     a shell command to run first; optional
#   command: topo -i $golden/mini.xml           without the leading "crosstie"
#   exit: 3                                     default 0
#   stdout: topo-mini.out                       a file here; without it stdout must be empty
#   stderr: crosstie: error: …                  a line of stderr; without one it must be empty
#
# $golden is this folder, $tmp an empty one. In what the command prints they stand as themselves,
# so that results do not depend on where the tests run. UPDATE_GOLDEN=1 rewrites the files of
# stdout. `run.t NAME…` runs the cases named.
golden=$(cd "$(dirname "$0")" && pwd)
command=${CROSSTIE:-${builddir:-.}/crosstie}
# The tests' own variables; of unknown ones the command warns.
unset CROSSTIE_TEST_EFFORT CROSSTIE_TEST_SEED
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

field() { sed -n "s/^$1: *//p" "$case_file"; }
fail() { why="$why
#   $1"; }
neutral() { sed -e "s|$golden|\$golden|g" -e "s|$tmp|\$tmp|g" "$1"; }

run_case() {
  tmp=$work/$name.d
  mkdir "$tmp"
  prepare=$(field prepare)
  [ -z "$prepare" ] || eval "$prepare" || fail "prepare failed"
  eval "timeout 60 \"$command\" $(field command)" >"$work/out" 2>"$work/err" </dev/null
  code=$?
  neutral "$work/out" >"$work/stdout"
  neutral "$work/err" >"$work/stderr"
}

check_exit() {
  expected=$(field exit)
  [ "$code" = "${expected:-0}" ] || fail "exit code $code, expected ${expected:-0}"
}

check_stderr() {
  field stderr >"$work/expected"
  difference=$(diff "$work/expected" "$work/stderr") || fail "stderr:
$(printf '%s\n' "$difference" | sed 's/^/#   /')"
}

check_stdout() {
  file=$(field stdout)
  if [ -z "$file" ]; then
    [ ! -s "$work/stdout" ] || fail "stdout is not empty"
    return
  fi
  [ -z "$UPDATE_GOLDEN" ] || cp "$work/stdout" "$golden/$file"
  difference=$(diff "$golden/$file" "$work/stdout" 2>&1) || fail "$file:
$(printf '%s\n' "$difference" | head -n 20 | sed 's/^/#   /')"
}

# The TAP harness of the unit tests adds options of its own; names have no leading dash.
names=
for argument; do case $argument in -*|[0-9]) ;; *) names="$names $argument" ;; esac; done
[ -n "$names" ] || names=$(cd "$golden" && for f in *.test; do echo "${f%.test}"; done)
# shellcheck disable=SC2086
set -- $names
echo "1..$#"
number=0
for name; do
  number=$((number + 1))
  case_file=$golden/$name.test
  why=
  run_case
  check_exit
  check_stderr
  check_stdout
  if [ -z "$why" ]; then echo "ok $number - $name"; else printf '%s\n' "not ok $number - $name$why"; fi
done
