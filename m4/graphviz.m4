# SPDX-License-Identifier: Apache-2.0
AC_DEFUN([CROSSTIE_CHECK_GRAPHVIZ], [
  CROSSTIE_OPTIONAL([graphviz], [Graphviz's dot, to draw topologies],
    [AC_PATH_PROG([DOT], [dot])
     AS_IF([test -n "$DOT"], [have_graphviz="yes $DOT (found; nothing uses it yet)"],
           [have_graphviz="no: no dot on PATH (Debian: graphviz)"])])])
