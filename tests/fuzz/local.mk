# SPDX-License-Identifier: Apache-2.0
# Programs in libFuzzer's form with our driver. `NAME.t FILE…` replays inputs. tests/fuzz/long is for
# fuzzing at length, with clang's libFuzzer in place of the driver.
fuzz_driver = tests/fuzz/libdriver.la
EXTRA_DIST += tests/fuzz/long
EXTRA_DIST += tests/fuzz/corpus tests/fuzz/cluster_toml.dict tests/fuzz/json.dict \
  tests/fuzz/nccl_xml.dict tests/fuzz/machine_toml.dict tests/fuzz/hwloc_xml.dict \
  tests/fuzz/synthetic.dict tests/fuzz/options.dict tests/fuzz/facts.dict \
  tests/fuzz/tcp_stream.dict tests/fuzz/tcp_handshake.dict tests/fuzz/shm_peer.dict \
  tests/fuzz/channel.dict tests/fuzz/rendezvous.dict \
  tests/fuzz/logs.dict

check_LTLIBRARIES += tests/fuzz/libdriver.la
tests_fuzz_libdriver_la_SOURCES = tests/fuzz/driver.cc \
  tests/fuzz/inputs.cc tests/fuzz/inputs.h tests/fuzz/mutator.cc tests/fuzz/mutator.h
tests_fuzz_libdriver_la_CPPFLAGS = $(test_cppflags)

fuzz_programs = \
  tests/fuzz/cluster_toml.t tests/fuzz/hwloc_xml.t tests/fuzz/json.t \
  tests/fuzz/nccl_xml.t tests/fuzz/machine_toml.t tests/fuzz/synthetic.t tests/fuzz/options.t \
  tests/fuzz/facts.t tests/fuzz/tcp_stream.t tests/fuzz/tcp_handshake.t tests/fuzz/shm_peer.t \
  tests/fuzz/channel.t tests/fuzz/rendezvous.t tests/fuzz/logs.t
check_PROGRAMS += $(fuzz_programs)
TESTS += $(fuzz_programs)

fuzz_topology_libs = $(fuzz_driver) $(topology_libs)
fuzz_transport_libs = $(fuzz_driver) src/transport/libtransport.la \
  src/memory/libmemory.la src/base/libbase.la
fuzz_runtime_libs = $(fuzz_driver) src/runtime/libruntime.la \
  src/transport/libtransport.la src/memory/libmemory.la src/topology/libshape.la \
  src/base/libbase.la -lpthread
tests_fuzz_cluster_toml_t_SOURCES = tests/fuzz/cluster_toml.cc tests/fuzz/machine.h tests/fuzz/target.h
tests_fuzz_cluster_toml_t_LDADD = $(fuzz_topology_libs)
tests_fuzz_json_t_SOURCES = tests/fuzz/json.cc tests/fuzz/machine.h tests/fuzz/target.h
tests_fuzz_json_t_LDADD = $(fuzz_topology_libs)
tests_fuzz_hwloc_xml_t_SOURCES = tests/fuzz/hwloc_xml.cc tests/fuzz/machine.h tests/fuzz/target.h
tests_fuzz_hwloc_xml_t_LDADD = $(fuzz_topology_libs)
tests_fuzz_nccl_xml_t_SOURCES = tests/fuzz/nccl_xml.cc tests/fuzz/machine.h tests/fuzz/target.h
tests_fuzz_nccl_xml_t_LDADD = $(fuzz_topology_libs)
tests_fuzz_machine_toml_t_SOURCES = tests/fuzz/machine_toml.cc tests/fuzz/machine.h tests/fuzz/target.h
tests_fuzz_machine_toml_t_LDADD = $(fuzz_topology_libs)
tests_fuzz_synthetic_t_SOURCES = tests/fuzz/synthetic.cc tests/fuzz/target.h
tests_fuzz_synthetic_t_LDADD = $(fuzz_topology_libs)
tests_fuzz_options_t_SOURCES = tests/fuzz/options.cc tests/fuzz/target.h
tests_fuzz_options_t_LDADD = $(fuzz_runtime_libs)
tests_fuzz_facts_t_SOURCES = tests/fuzz/facts.cc tests/fuzz/target.h
tests_fuzz_facts_t_LDADD = $(fuzz_runtime_libs)
tests_fuzz_channel_t_SOURCES = tests/fuzz/channel.cc tests/fuzz/target.h
tests_fuzz_channel_t_LDADD = $(fuzz_runtime_libs)
tests_fuzz_rendezvous_t_SOURCES = tests/fuzz/rendezvous.cc tests/fuzz/target.h
tests_fuzz_rendezvous_t_LDADD = $(fuzz_runtime_libs)
tests_fuzz_tcp_stream_t_SOURCES = tests/fuzz/tcp_stream.cc tests/fuzz/target.h
tests_fuzz_tcp_stream_t_LDADD = $(fuzz_transport_libs)
tests_fuzz_tcp_handshake_t_SOURCES = tests/fuzz/tcp_handshake.cc tests/fuzz/target.h
tests_fuzz_tcp_handshake_t_LDADD = $(fuzz_transport_libs)
tests_fuzz_shm_peer_t_SOURCES = tests/fuzz/shm_peer.cc tests/fuzz/target.h
tests_fuzz_shm_peer_t_LDADD = $(fuzz_transport_libs)
tests_fuzz_logs_t_SOURCES = tests/fuzz/logs.cc tests/fuzz/target.h
tests_fuzz_logs_t_LDADD = $(fuzz_driver) src/cost/libfit.la src/cost/libsearch.la \
  src/cost/libcost.la $(topology_libs)
