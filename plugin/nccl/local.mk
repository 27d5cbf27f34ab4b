# SPDX-License-Identifier: Apache-2.0
# The NCCL plugin: one shared object that needs glibc and libgcc_s alone, so that it loads into
# any process that runs NCCL.
noinst_LTLIBRARIES += plugin/nccl/libplugin.la
plugin_nccl_libplugin_la_SOURCES = \
  plugin/nccl/abi/common.h \
  plugin/nccl/abi/profiler_v4.h \
  plugin/nccl/abi/tuner_v2.h \
  plugin/nccl/abi/tuner_v3.h \
  plugin/nccl/abi/tuner_v4.h \
  plugin/nccl/abi/tuner_v5.h \
  plugin/nccl/abi/tuner_v6.h \
  plugin/nccl/guarded.h \
  plugin/nccl/logger.h \
  plugin/nccl/options.h \
  plugin/nccl/outcome_log.cc plugin/nccl/outcome_log.h \
  plugin/nccl/process.cc plugin/nccl/process.h \
  plugin/nccl/profiler.cc plugin/nccl/profiler.h \
  plugin/nccl/profiler_versions.cc \
  plugin/nccl/tuner.cc plugin/nccl/tuner.h \
  plugin/nccl/tuner_versions.cc
plugin_nccl_libplugin_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/plugin

# Not by libtool, which drops -static-libstdc++ when it links C++ modules. Without --gc-sections
# libstdc++'s unused parts ask for GLIBC_2.36; libgcc_s stays dynamic, as the unwinder must be one
# for the whole process. ld.so finds the plugin by name, hence $(libdir).
# It stays mapped (nodelete): NCCL closes and reopens it for each communicator where there is one
# at a time, and each load of a static libstdc++ leaves its 72 KB pool for exceptions behind.
plugin_nccl_rooms = \
  plugin/nccl/libplugin.la \
  $(nccl_choice_libs)
# Of the topology only what describes a machine is linked: nothing there looks at the host.
plugin_nccl_parts = \
  src/choice/.libs/libncclchoice.a src/cost/.libs/libsearch.a src/cost/.libs/libcost.a \
  src/topology/.libs/libtopology.a src/base/.libs/libbase.a
plugin_nccl_archives = \
  -Wl,--whole-archive plugin/nccl/.libs/libplugin.a -Wl,--no-whole-archive \
  $(plugin_nccl_parts)
plugin/nccl/libnccl-tuner-crosstie.so: $(plugin_nccl_rooms) $(srcdir)/plugin/nccl/plugin.map
	$(AM_V_GEN)$(CXX) -shared $(AM_CXXFLAGS) $(CXXFLAGS) $(AM_LDFLAGS) $(LDFLAGS) -o $@ \
	  -static-libstdc++ -Wl,--gc-sections -Wl,-z,defs -Wl,-z,nodelete \
	  -Wl,--exclude-libs,libncclchoice.a:libsearch.a:libcost.a:libtopology.a:libbase.a:libstdc++.a \
	  -Wl,--version-script,$(srcdir)/plugin/nccl/plugin.map $(plugin_nccl_archives)

# NCCL looks for a name of each kind of plugin. Links, not copies: what the profiler hears, the
# tuner must know, and a copy would be loaded beside the first with a state of its own.
nccl_plugin_links = \
  plugin/nccl/libnccl-profiler-crosstie.so \
  plugin/nccl/libnccl-net-crosstie.so
$(nccl_plugin_links): plugin/nccl/libnccl-tuner-crosstie.so
	$(AM_V_GEN)ln -sf libnccl-tuner-crosstie.so $@
all-local: $(nccl_plugin_links)
install-exec-hook:
	for link in $(nccl_plugin_links); do \
	  ln -sf libnccl-tuner-crosstie.so "$(DESTDIR)$(libdir)/$${link##*/}" || exit 1; \
	done
uninstall-hook:
	for link in $(nccl_plugin_links); do rm -f "$(DESTDIR)$(libdir)/$${link##*/}"; done

# A script to automake: what is installed as it is, and executable.
ncclpluginexecdir = $(libdir)
nodist_ncclpluginexec_SCRIPTS = plugin/nccl/libnccl-tuner-crosstie.so
CLEANFILES += plugin/nccl/libnccl-tuner-crosstie.so $(nccl_plugin_links)
EXTRA_DIST += plugin/nccl/plugin.map
