# SPDX-License-Identifier: Apache-2.0
AC_DEFUN([CROSSTIE_CHECK_JSON], [
  CROSSTIE_HEADER_LIBRARY([nlohmann-json], [nlohmann/json.hpp], [nlohmann-json3-dev])])
