# SPDX-License-Identifier: Apache-2.0
machine_files = \
  data/machines/a100x4-slingshot.toml \
  data/machines/dgx-a100.toml \
  data/machines/dgx-h100.toml \
  data/machines/dgx-h800.toml \
  data/machines/dgx-v100.toml \
  data/machines/gb200-nvl72.toml \
  data/machines/gb300-nvl72.toml \
  data/machines/gh200x4-slingshot.toml \
  data/machines/hgx-b200.toml \
  data/machines/hgx-b300.toml \
  data/machines/hgx-h200.toml \
  data/machines/mi300x8.toml \
  data/machines/pcie-3090x8.toml \
  data/machines/pcie-4090x8.toml \
  data/machines/pcie-a100x8.toml
# From the oldest, which is whole, to the newest; each holds what it changed.
nccl_files = \
  data/nccl/2.27.3.toml \
  data/nccl/2.28.3.toml \
  data/nccl/2.28.7.toml \
  data/nccl/2.28.9.toml \
  data/nccl/2.29.2.toml \
  data/nccl/2.29.7.toml \
  data/nccl/2.30.3.toml
profile_files = data/profiles/published.toml
EXTRA_DIST += $(machine_files) $(nccl_files) $(profile_files) data/classes.toml data/gpus.toml \
  data/embed.awk

# Built in, so that the command and the library need no installed data. Of $$files, as what the
# function $$list of $$header returns.
embed = $(MKDIR_P) data; set --; for f in $$files; do set -- "$$@" "$(srcdir)/$$f"; done; \
  $(AWK) -v header=$$header -v list=$$list -f $(srcdir)/data/embed.awk "$$@" > $@.tmp && \
  mv $@.tmp $@
data/machines.cc: $(machine_files) data/embed.awk
	$(AM_V_GEN)files='$(machine_files)' header=topology/format/formats.h list=known_machines; $(embed)
data/gpus.cc: data/gpus.toml data/embed.awk
	$(AM_V_GEN)files=data/gpus.toml header=topology/gpu_kinds.h list=known_gpus; $(embed)
data/nccl.cc: $(nccl_files) data/embed.awk
	$(AM_V_GEN)files='$(nccl_files)' header=cost/nccl/release.h list=known_nccl_releases; $(embed)
data/profiles.cc: $(profile_files) data/embed.awk
	$(AM_V_GEN)files='$(profile_files)' header=cost/profile.h list=known_profiles; $(embed)
data/classes.cc: data/classes.toml data/embed.awk
	$(AM_V_GEN)files=data/classes.toml header=choice/class_rules.h list=known_class_rules; $(embed)
embedded = data/classes.cc data/gpus.cc data/machines.cc data/nccl.cc data/profiles.cc
BUILT_SOURCES += $(embedded)
CLEANFILES += $(embedded) $(embedded:=.tmp)
