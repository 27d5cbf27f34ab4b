# SPDX-License-Identifier: Apache-2.0
AC_DEFUN([CROSSTIE_CHECK_EXPECTED], [
  CROSSTIE_HEADER_LIBRARY([tl::expected], [tl/expected.hpp], [libexpected-dev])])
