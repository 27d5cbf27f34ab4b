# SPDX-License-Identifier: Apache-2.0
# Linear algebra for fitting the cost model; headers only. As system headers: it does not build
# under our warnings.
AC_DEFUN([CROSSTIE_CHECK_EIGEN], [
  PKG_CHECK_MODULES([EIGEN], [eigen3 >= 3.4], [], [CROSSTIE_NEED([Eigen 3.4], [libeigen3-dev])])
  AC_SUBST([EIGEN_FLAGS], [`AS_ECHO(["$EIGEN_CFLAGS"]) | sed 's/-I/-isystem /g'`])])
