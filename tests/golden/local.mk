# SPDX-License-Identifier: Apache-2.0
# Tests through the command: see run.t. Any *.test here is found by itself.
TESTS += tests/golden/run.t
EXTRA_DIST += tests/golden
# What running them has left beside them in the build tree is not for a release.
dist-hook:
	rm -f $(distdir)/tests/golden/*.log $(distdir)/tests/golden/*.trs
