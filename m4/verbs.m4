# SPDX-License-Identifier: Apache-2.0
# Headers alone: the library is opened at run time.
AC_DEFUN([CROSSTIE_CHECK_VERBS], [
  PKG_CHECK_MODULES([IBVERBS], [libibverbs],
    [ibverbs_version=$($PKG_CONFIG --modversion libibverbs)],
    [CROSSTIE_NEED([libibverbs headers], [libibverbs-dev])])])
