# SPDX-License-Identifier: Apache-2.0

AC_DEFUN([CROSSTIE_CXX20], [
  AC_LANG_PUSH([C++])
  crosstie_saved="$CXXFLAGS"
  CXXFLAGS="$CXXFLAGS -std=c++20"
  AC_MSG_CHECKING([whether $CXX knows C++20])
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <span>
#include <concepts>]], [[std::span<const int> s; return (int)s.size();]])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([a C++20 compiler is needed (g++ 12 or later)])])
  CXXFLAGS="$crosstie_saved"
  AC_LANG_POP([C++])])

# Warnings are errors in a git tree only: a release must build with compilers to come.
AC_DEFUN([CROSSTIE_WARNINGS], [
  AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror],
    [treat warnings as errors (default: in a git tree)])], [],
    [AS_IF([test -e "$srcdir/.git"], [enable_werror=yes], [enable_werror=no])])
  WARNING_FLAGS="-Wall -Wextra"
  AS_IF([test "x$enable_werror" = xyes],
        [WARNING_FLAGS="$WARNING_FLAGS -Werror"
         crosstie_werror_note=", warnings are errors"])
  AC_SUBST([WARNING_FLAGS])])

# --enable-sanitize=address,undefined or thread: for the tests' own builds.
AC_DEFUN([CROSSTIE_SANITIZE], [
  AC_ARG_ENABLE([sanitize], [AS_HELP_STRING([--enable-sanitize=LIST],
    [build with -fsanitize=LIST: address,undefined or thread])], [], [enable_sanitize=no])
  AS_IF([test "x$enable_sanitize" != xno],
        [crosstie_sanitize="$enable_sanitize"
         SANITIZE_FLAGS="-fsanitize=$enable_sanitize -fno-sanitize-recover=all -fno-omit-frame-pointer"])
  AC_SUBST([SANITIZE_FLAGS])
  AM_CONDITIONAL([SANITIZED], [test "x$enable_sanitize" != xno])])
