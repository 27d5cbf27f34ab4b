# SPDX-License-Identifier: Apache-2.0
AC_DEFUN([CROSSTIE_CHECK_CAIRO], [
  CROSSTIE_OPTIONAL([cairo], [Cairo, to plot choices as SVG and PNG],
    [PKG_CHECK_MODULES([CAIRO], [cairo-svg >= 1.16 cairo-png],
       [have_cairo="yes $($PKG_CONFIG --modversion cairo)"],
       [have_cairo="no: pkg-config finds no cairo-svg >= 1.16 and cairo-png (Debian: libcairo2-dev)"])])])
