# SPDX-License-Identifier: Apache-2.0
# The stock NCCL, for the tests only: they run it without a GPU, for which they need CUDA's and
# NCCL's headers and a libnccl.so.2 that is not stripped.
AC_DEFUN([CROSSTIE_CHECK_NCCL], [
  CROSSTIE_FIND_NCCL
  CROSSTIE_OPTIONAL([nccl], [NCCL, to test the plugins in it],
    [crosstie_find_nccl])
  AC_SUBST([have_nccl])
  AC_SUBST([NCCL_LIBRARY])
  AC_SUBST([NCCL_INCLUDE], [$CUDA_HOME/include])])

AC_DEFUN([CROSSTIE_FIND_NCCL], [
  crosstie_find_nccl() {
    for header in cuda.h cuda_runtime_api.h nccl.h; do
      if test ! -r "$CUDA_HOME/include/$header"; then
        have_nccl="no: no $header in the CUDA toolkit (${CUDA_HOME:-none found})"
        return
      fi
    done
    for folder in "$CUDA_HOME/lib64" "$CUDA_HOME/lib" \
        $(/sbin/ldconfig -p 2>/dev/null | $AWK '$[]1 == "libnccl.so.2" {sub("/[[^/]]*$", "", $NF); print $NF}'); do
      NCCL_LIBRARY=$folder/libnccl.so.2
      test -r "$NCCL_LIBRARY" || continue
      have_nccl="no: $NCCL_LIBRARY has no symbol table"
      if readelf -SW "$NCCL_LIBRARY" 2>/dev/null | grep -q ' \.symtab '; then
        have_nccl="yes $NCCL_LIBRARY"
        return
      fi
    done
    have_nccl=${have_nccl:-"no: no libnccl.so.2 in $CUDA_HOME/lib64, $CUDA_HOME/lib or ld.so's cache"}
  }])
