# SPDX-License-Identifier: Apache-2.0
machine_files = \
  data/machines/dgx-a100.toml \
  data/machines/dgx-h100.toml \
  data/machines/gb200-nvl72.toml
EXTRA_DIST += $(machine_files) data/embed.awk

# Built in, so that the command and the library need no installed data.
data/machines.cc: $(machine_files) data/embed.awk
	$(AM_V_GEN)$(MKDIR_P) data; set -- ; \
	for f in $(machine_files); do set -- "$$@" "$(srcdir)/$$f"; done; \
	$(AWK) -f $(srcdir)/data/embed.awk "$$@" > $@.tmp && mv $@.tmp $@
BUILT_SOURCES += data/machines.cc
CLEANFILES += data/machines.cc data/machines.cc.tmp
