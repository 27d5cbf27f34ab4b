# SPDX-License-Identifier: Apache-2.0
# Tests through the command: see run.t. Any *.test here is found by itself.
TESTS += tests/golden/run.t
EXTRA_DIST += tests/golden
