# SPDX-License-Identifier: Apache-2.0
noinst_LTLIBRARIES += src/transport/libtransport.la
src_transport_libtransport_la_SOURCES = \
  src/transport/endpoint.h \
  src/transport/events.h \
  src/transport/lane.cc src/transport/lane.h \
  src/transport/options.h \
  src/transport/poller.cc src/transport/poller.h \
  src/transport/regions.h \
  src/transport/shm.cc src/transport/shm.h \
  src/transport/shm_link.cc src/transport/shm_link.h \
  src/transport/shm_meeting.cc \
  src/transport/shm_regions.cc \
  src/transport/shm_ring.h \
  src/transport/shm_worker.h \
  src/transport/tcp.cc src/transport/tcp.h \
  src/transport/tcp_devices.cc src/transport/tcp_devices.h \
  src/transport/tcp_link.cc src/transport/tcp_link.h \
  src/transport/tcp_receiver.cc src/transport/tcp_receiver.h \
  src/transport/tcp_sender.cc src/transport/tcp_sender.h \
  src/transport/tcp_socket.cc src/transport/tcp_socket.h \
  src/transport/unix_socket.cc src/transport/unix_socket.h \
  src/transport/wire/bytes.h \
  src/transport/wire/frame.h \
  src/transport/wire/handshake.h \
  src/transport/wire/key.h \
  src/transport/wire/packet.h
