# SPDX-License-Identifier: Apache-2.0
# The plugin by itself: what it needs and exports, and that any C program can load it.
dist_check_SCRIPTS += tests/nccl/needed.sh
TESTS += tests/nccl/needed.sh
check_PROGRAMS += tests/nccl/load
tests_nccl_load_SOURCES = tests/nccl/load.c
tests_nccl_load_LDADD = -ldl

# As NCCL's threads use it.
check_PROGRAMS += tests/nccl/threads.t
TESTS += tests/nccl/threads.t
tests_nccl_threads_t_SOURCES = tests/nccl/threads.cc
tests_nccl_threads_t_CPPFLAGS = $(test_cppflags) $(plugin_cppflags)
tests_nccl_threads_t_LDADD = $(plugin_libs)

# What a call costs.
check_PROGRAMS += tests/nccl/ask
tests_nccl_ask_SOURCES = tests/nccl/ask.cc
tests_nccl_ask_CPPFLAGS = $(test_cppflags) $(plugin_cppflags)
tests_nccl_ask_LDADD = $(plugin_libs)
dist_check_SCRIPTS += tests/nccl/ask.sh
TESTS += tests/nccl/ask.sh

# The plugin in the stock NCCL. Skips by itself where there is none.
on_rig = tests/nccl/classes.sh tests/nccl/tuner.sh tests/nccl/versions.sh
dist_check_SCRIPTS += $(on_rig)
TESTS += $(on_rig)
EXTRA_DIST += tests/nccl/on_rig.sh tests/nccl/one_version.c tests/nccl/show

# Our paths beside NCCL's, on machines of our own drawing.
check_PROGRAMS += tests/nccl/paths
tests_nccl_paths_SOURCES = tests/nccl/known.h tests/nccl/paths.cc
tests_nccl_paths_LDADD = $(topology_libs)
dist_check_SCRIPTS += tests/nccl/paths.sh
TESTS += tests/nccl/paths.sh
EXTRA_DIST += tests/nccl/machines tests/nccl/known.sh

# Our reproduction of NCCL's decisions beside NCCL's own.
check_PROGRAMS += tests/nccl/model
tests_nccl_model_SOURCES = tests/nccl/known.h tests/nccl/model.cc
tests_nccl_model_LDADD = src/cost/libsearch.la src/cost/libcost.la $(topology_libs)
dist_check_SCRIPTS += tests/nccl/model.sh
TESTS += tests/nccl/model.sh

# The rig: the emulated CUDA driver and runtime are one library, whose soname makes every later
# dlopen("libcuda.so.1") in the process resolve to it. Not libtool's way of naming.
rig = tests/nccl/rig
rig_cuda_sources = $(rig)/patch.cc $(rig)/mem.cc $(rig)/stream.cc $(rig)/rt.cc $(rig)/drv.cc
rig_ncclrig_sources = $(rig)/ncclrig.cc $(rig)/rank.cc $(rig)/topo.cc
rig_sources = $(rig_cuda_sources) $(rig)/nvml.cc $(rig)/net.cc $(rig_ncclrig_sources)
rig_headers = $(rig)/mem.h $(rig)/rank.h $(rig)/rig.h $(rig)/stream.h $(rig)/topo.h
EXTRA_DIST += $(rig_sources) $(rig_headers)
if HAVE_NCCL
if !SANITIZED
check_DATA = $(rig)/libcuda.so.1 $(rig)/libnvidia-ml.so.1 $(rig)/librignet.so $(rig)/ncclrig
CLEANFILES += $(check_DATA)
endif
endif
rig_compile = $(CXX) $(AM_CXXFLAGS) -fvisibility=default -DFMT_HEADER_ONLY -D_GNU_SOURCE \
  -I$(NCCL_INCLUDE) -DNCCL_LIBRARY='"$(NCCL_LIBRARY)"' $(CXXFLAGS) $(LDFLAGS) \
  -Wl,-rpath,'$$ORIGIN' -pthread -o $@

$(rig)/libcuda.so.1: $(rig_cuda_sources) $(rig_headers)
	$(AM_V_GEN)$(MKDIR_P) $(rig); sources=; \
	for f in $(rig_cuda_sources); do sources="$$sources $(srcdir)/$$f"; done; \
	$(rig_compile) -fPIC -shared -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic $$sources -ldl
$(rig)/libnvidia-ml.so.1: $(rig)/nvml.cc $(rig)/libcuda.so.1
	$(AM_V_GEN)$(rig_compile) -fPIC -shared -Wl,-soname,libnvidia-ml.so.1 \
	  $(srcdir)/$(rig)/nvml.cc $(rig)/libcuda.so.1
$(rig)/librignet.so: $(rig)/net.cc
	$(AM_V_GEN)$(MKDIR_P) $(rig); $(rig_compile) -fPIC -shared $(srcdir)/$(rig)/net.cc
$(rig)/ncclrig: $(rig_ncclrig_sources) $(rig_headers) $(rig)/libcuda.so.1
	$(AM_V_GEN)sources=; \
	for f in $(rig_ncclrig_sources); do sources="$$sources $(srcdir)/$$f"; done; \
	$(rig_compile) $(PUGIXML_CFLAGS) $$sources $(rig)/libcuda.so.1 $(PUGIXML_LIBS) -ldl
