# SPDX-License-Identifier: Apache-2.0
noinst_LTLIBRARIES += src/choice/libchoice.la
src_choice_libchoice_la_SOURCES = \
  src/choice/choice.h \
  src/choice/choose.cc src/choice/choose.h
