# SPDX-License-Identifier: Apache-2.0
AC_DEFUN([CROSSTIE_CHECK_HWLOC], [
  PKG_CHECK_MODULES([HWLOC], [hwloc >= 2.4],
    [hwloc_version=$($PKG_CONFIG --modversion hwloc)],
    [CROSSTIE_NEED([hwloc 2.4 or later], [libhwloc-dev])])])
