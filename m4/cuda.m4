# SPDX-License-Identifier: Apache-2.0
# nvcc alone, to compile kernels; the driver is opened at run time.
AC_DEFUN([CROSSTIE_CHECK_CUDA], [
  CROSSTIE_OPTIONAL([cuda], [nvcc, to compile GPU kernels],
    [AC_PATH_PROG([NVCC], [nvcc], [], [$PATH:/usr/local/cuda/bin])
     AS_IF([test -n "$NVCC"],
           [have_cuda="yes $NVCC (found; there are no kernels yet)"
            AC_SUBST([CUDA_HOME], [$(dirname "$(dirname "$(readlink -f "$NVCC")")")])],
           [have_cuda="no: no nvcc on PATH nor in /usr/local/cuda/bin"])])])
