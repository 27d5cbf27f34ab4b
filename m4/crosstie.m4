# SPDX-License-Identifier: Apache-2.0
# What the dependency files share: collecting what is missing, tri-state options, the summary.

# CROSSTIE_NEED(NAME, DEBIAN-PACKAGE): notes a missing required part; configure goes on, so that
# one run names them all.
AC_DEFUN([CROSSTIE_NEED], [
  crosstie_missing="$crosstie_missing
    $1 (Debian: $2)"])

AC_DEFUN([CROSSTIE_REQUIRED_OR_FAIL], [
  AS_IF([test -n "$crosstie_missing"],
        [AC_MSG_ERROR([required parts were not found:$crosstie_missing])])])

# CROSSTIE_HEADER_LIBRARY(NAME, HEADER, DEBIAN-PACKAGE): a header-only C++ library.
AC_DEFUN([CROSSTIE_HEADER_LIBRARY], [
  AC_LANG_PUSH([C++])
  crosstie_saved="$CXXFLAGS"
  CXXFLAGS="$CXXFLAGS -std=c++20"
  AC_CHECK_HEADER([$2], [], [CROSSTIE_NEED([$1], [$3])])
  CXXFLAGS="$crosstie_saved"
  AC_LANG_POP([C++])])

# CROSSTIE_OPTIONAL(name, WHAT-FOR, CHECK): runs CHECK, which sets have_<name> to yes or to
# the reason why not.
AC_DEFUN([CROSSTIE_OPTIONAL], [
  AC_ARG_WITH([$1], [AS_HELP_STRING([--with-$1], [$2 (default: if found)])],
              [], [with_$1=check])
  AS_IF([test "x$with_$1" = xno], [have_$1="no: --without-$1"], [$3])
  AS_CASE([$with_$1:$have_$1],
          [no:*|check:*|*:yes*], [],
          [AC_MSG_ERROR([--with-$1 was given, but: $have_$1])])
  AM_CONDITIONAL(m4_toupper([HAVE_$1]), [case "$have_$1" in yes*) true ;; *) false ;; esac])])

AC_DEFUN([CROSSTIE_SUMMARY], [
  AS_ECHO(["
  $PACKAGE_STRING
    prefix            $prefix
    compiler          $CXX$crosstie_werror_note
    sanitizers        ${crosstie_sanitize:-none}
    hwloc             yes $hwloc_version
    libibverbs        headers $ibverbs_version (opened at run time)
    NCCL, CUDA, NVML  opened at run time
    ucx               $have_ucx
    cuda kernels      $have_cuda
    stock NCCL tests  $have_nccl
    criterion tests   $have_criterion
    graphviz          $have_graphviz
    cairo             $have_cairo
"])])
