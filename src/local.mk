# SPDX-License-Identifier: Apache-2.0
# One hidden convenience library a room; the order shows who may include whom.
include src/base/local.mk
include src/driver/local.mk
include src/topology/local.mk
include src/schedule/local.mk
include src/cost/local.mk
include src/choice/local.mk
include src/memory/local.mk
include src/transport/local.mk
include src/runtime/local.mk
include src/api/local.mk

noinst_LTLIBRARIES += src/libsettings.la
src_libsettings_la_SOURCES = src/settings.cc src/settings.h
# The plugin's options too.
src_libsettings_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/plugin
