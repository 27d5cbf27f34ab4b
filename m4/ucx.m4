# SPDX-License-Identifier: Apache-2.0
AC_DEFUN([CROSSTIE_CHECK_UCX], [
  CROSSTIE_OPTIONAL([ucx], [UCX, a second way to RDMA fabrics],
    [PKG_CHECK_MODULES([UCX], [ucx >= 1.12],
       [have_ucx="yes $($PKG_CONFIG --modversion ucx) (found; nothing uses it yet)"],
       [have_ucx="no: pkg-config finds no ucx >= 1.12 (Debian: libucx-dev)"])])])
