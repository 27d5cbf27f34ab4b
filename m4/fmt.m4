# SPDX-License-Identifier: Apache-2.0
# Its headers alone, so that nothing we ship needs libfmt.so. See src/base/fmt.cc.
AC_DEFUN([CROSSTIE_CHECK_FMT], [
  CROSSTIE_HEADER_LIBRARY([fmt], [fmt/format.h], [libfmt-dev])
  AC_LANG_PUSH([C++])
  crosstie_saved_cppflags="$CPPFLAGS" crosstie_saved_cxxflags="$CXXFLAGS"
  CPPFLAGS="$CPPFLAGS -I$srcdir/src" CXXFLAGS="-std=c++20 -O0"
  AC_MSG_CHECKING([whether fmt's body can be compiled once])
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include "base/fmt.cc"
#include <string>]],
      [[return (int)fmt::format("{} {:.3g} {:>8}", 1, 2.0, std::string("x")).size();]])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no, header-only])
     FMT_FLAGS=-DFMT_HEADER_ONLY])
  CPPFLAGS="$crosstie_saved_cppflags" CXXFLAGS="$crosstie_saved_cxxflags"
  AC_SUBST([FMT_FLAGS])
  AC_LANG_POP([C++])])
