# SPDX-License-Identifier: Apache-2.0
AC_DEFUN([CROSSTIE_CHECK_TOML], [
  CROSSTIE_HEADER_LIBRARY([toml++], [toml++/toml.h], [libtomlplusplus-dev])])
