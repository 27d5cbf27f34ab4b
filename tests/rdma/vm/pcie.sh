# SPDX-License-Identifier: Apache-2.0
# Part of run-in-vm: from a TREE to QEMU's devices. Sets devices, nodes and rails.

ports=0 rails=0 nics=0
declare -A upstream=()

# add_port WHERE: a free slot beneath a node or a switch; sets bus. Root ports and downstream ports
# are bridges with one slot.
add_port() {
  bus=port$((++ports))
  local place=chassis=$ports,slot=$ports
  case $1 in
    */*) devices+=(-device "xio3130-downstream,id=$bus,bus=${upstream[$1]},$place") ;;
    *) devices+=(-device "pcie-root-port,id=$bus,bus=complex$1,$place,x-speed=16,x-width=16") ;;
  esac
}

# add_complex NODE: its PCIe root complex. They take the bus numbers from 32 on.
add_complex() {
  upstream[$1]=complex$1
  devices+=(-device "pxb-pcie,id=complex$1,bus=pcie.0,bus_nr=$((32 + 28 * $1)),numa_node=$1")
  (($1 < nodes)) || nodes=$(($1 + 1))
}

# add_switch PATH, beneath what is there of PATH.
add_switch() {
  add_port "${1%/*}"
  upstream[$1]=switch$ports
  devices+=(-device "x3130-upstream,id=switch$ports,bus=$bus")
}

# add_card MODEL NETWORK MAC: on a network that nobody else is on.
add_card() {
  devices+=(-netdev "hubport,id=$2,hubid=$ports")
  device=$1,netdev=$2,mac=$3
}

# add_device KIND, at bus. The machine knows the rails by their addresses (vm/start).
add_device() {
  local device=$1 address
  case $1 in
    rail | rail-*)
      address=52:54:00:aa:00:$(printf %02x "$rails")
      case $1 in
        rail) add_card virtio-net-pci,host_mtu=9000 "rail$rails" "$address" ;;
        *) add_card "${1#rail-}" "rail$rails" "$address" ;;
      esac
      rails=$((rails + 1))
      ;;
    nic) add_card e1000e "nic$nics" "52:54:00:bb:00:$(printf %02x $((nics++)))" ;;
    # The only display controller of QEMU's with such a number: an old one of AMD's.
    gpu) device=ati-vga ;;
  esac
  devices+=(-device "$device,bus=$bus")
}

make_tree() {
  local leaf part path name
  devices=() nodes=1
  for leaf in $pcie; do
    IFS=/ read -r -a part <<<"$leaf"
    path=${part[0]}
    [[ $path =~ ^[0-7]$ && ${#part[@]} -ge 2 ]] || {
      echo "run-in-vm: '$leaf' is not NODE[/SWITCH...]/KIND" >&2
      exit 2
    }
    [ -n "${upstream[$path]-}" ] || add_complex "$path"
    for name in "${part[@]:1:${#part[@]}-2}"; do
      path+=/$name
      [ -n "${upstream[$path]-}" ] || add_switch "$path"
    done
    add_port "$path"
    add_device "${part[-1]}"
  done
}
