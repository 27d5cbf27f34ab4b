# SPDX-License-Identifier: Apache-2.0
AC_DEFUN([CROSSTIE_CHECK_CLI11], [CROSSTIE_HEADER_LIBRARY([CLI11], [CLI/CLI.hpp], [libcli11-dev])])
