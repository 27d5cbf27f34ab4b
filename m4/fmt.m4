# SPDX-License-Identifier: Apache-2.0
# Used header-only, so that nothing we ship needs libfmt.so.
AC_DEFUN([CROSSTIE_CHECK_FMT], [CROSSTIE_HEADER_LIBRARY([fmt], [fmt/format.h], [libfmt-dev])])
