# SPDX-License-Identifier: Apache-2.0
AC_DEFUN([CROSSTIE_CHECK_PUGIXML], [
  PKG_CHECK_MODULES([PUGIXML], [pugixml], [], [CROSSTIE_NEED([pugixml], [libpugixml-dev])])])
