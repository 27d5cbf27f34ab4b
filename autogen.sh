#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes ./configure from configure.ac. Needed in a git tree only; releases carry it.
set -e
cd "$(dirname "$0")"
exec autoreconf --install --warnings=all
