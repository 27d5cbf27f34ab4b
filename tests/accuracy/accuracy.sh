#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The cost model, fitted to published sweeps, is as true as it promises to be, and on systems that
# it has not seen as well.
sweeps=$srcdir/../shared/data/bench
if [ ! -d "$sweeps" ]; then
  echo "skipped: the published sweeps are not beside the sources"
  exit 77
fi
exec "$builddir/tests/accuracy/evaluate" "$srcdir/tests/accuracy/systems.toml" "$sweeps" ${SANITIZE_FLAGS:+quick}
