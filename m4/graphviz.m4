# SPDX-License-Identifier: Apache-2.0
AC_DEFUN([CROSSTIE_CHECK_GRAPHVIZ], [
  CROSSTIE_OPTIONAL([graphviz], [Graphviz, to draw topologies as SVG and PNG],
    [PKG_CHECK_MODULES([GRAPHVIZ], [libgvc >= 2.42 libcgraph],
       [have_graphviz="yes $($PKG_CONFIG --modversion libgvc)"],
       [have_graphviz="no: pkg-config finds no libgvc >= 2.42 (Debian: libgraphviz-dev)"])])])
