#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A host that vanishes: no connection is closed, no packet is answered.
. "$srcdir/tests/hosts/hosts.sh"
hosts 2
exec "$builddir/tests/hosts/vanish"
