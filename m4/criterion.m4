# SPDX-License-Identifier: Apache-2.0
AC_DEFUN([CROSSTIE_CHECK_CRITERION], [
  CROSSTIE_OPTIONAL([criterion], [Criterion, for the unit tests],
    [PKG_CHECK_MODULES([CRITERION], [criterion >= 2.3],
       [have_criterion="yes $($PKG_CONFIG --modversion criterion)"],
       [have_criterion="no: pkg-config finds no criterion >= 2.3 (Debian: libcriterion-dev); unit tests are skipped"])])])
