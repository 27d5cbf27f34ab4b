# SPDX-License-Identifier: Apache-2.0
# To be sourced first thing: `. "$srcdir/tests/hosts/hosts.sh"`. The test then runs in network and
# mount namespaces of its own, which end with it, and makes hosts there: network namespaces on one
# switch. Skips (77), with the reason, where that is not permitted.

skip() {
  echo "skipped: $1"
  exit 77
}

if [ -z "${IN_NAMESPACES-}" ]; then
  for tool in ip unshare nsenter; do
    command -v $tool >/dev/null || skip "$tool is not here (Debian: iproute2, util-linux)"
  done
  # As root, else as root of a user namespace.
  for which in -nm -rnm; do
    unshare $which true 2>/dev/null && IN_NAMESPACES=1 exec unshare $which "$0" "$@"
  done
  skip "network namespaces are not permitted here"
fi
unset IN_NAMESPACES
# /run/netns/switch is this namespace, with the hosts' other ends.
mount -t tmpfs none /run && mkdir /run/netns && : >/run/netns/switch &&
  mount --bind /proc/self/ns/net /run/netns/switch || skip "/run cannot be mounted here"

# hosts N: host 0 … N-1, with one interface each, eth0 of address 10.77.0.1 … N.
hosts() {
  ip link set lo up
  ip link add switch type bridge && ip link set switch up || skip "there are no bridges here"
  for host in $(seq 0 $(($1 - 1))); do
    ip netns add "host$host" &&
      ip link add "port$host" type veth peer name eth0 netns "host$host" ||
      skip "there are no virtual links here"
    ip link set "port$host" master switch up
    ip -n "host$host" addr add "$(address "$host")/24" dev eth0
    ip -n "host$host" link set eth0 up
    ip -n "host$host" link set lo up
  done
}

address() { echo "10.77.0.$(($1 + 1))"; }

# on HOST COMMAND…
on() {
  host=$1
  shift
  nsenter --net="/run/netns/host$host" "$@"
}

# Without a word to anyone, not even a lost carrier: nothing that HOST sends arrives, and nothing
# arrives at it.
cut() { ip link set "port$1" nomaster; }
mend() { ip link set "port$1" master switch; }

# Bytes that HOST has put on its link, with all headers.
sent_bytes() { on "$1" sed -n 's/^ *eth0: *//p' /proc/net/dev | awk '{ print $9 }'; }
