# SPDX-License-Identifier: Apache-2.0
# Part of run-in-vm: a kernel of this system. Sets kernel and release.

find_kernel() {
  release=$(cd /lib/modules 2>/dev/null && printf '%s\n' *-amd64 | grep -vE -- '-(cloud|rt)-' | sort -V | tail -n 1)
  [ -n "$release" ] && [ -r "/boot/vmlinuz-$release" ] ||
    skip "there is no readable kernel in /boot (Debian: linux-image-amd64)"
  kernel=$work/vmlinux
  unpack_kernel "/boot/vmlinuz-$release" || kernel=/boot/vmlinuz-$release
}

# Unpacked here in a second, where the emulated processor would take several.
unpack_kernel() {
  local offset
  offset=$(LC_ALL=C grep -abom1 $'\xfd7zXZ' "$1" | cut -d: -f1)
  [ -n "$offset" ] || return
  tail -c "+$((offset + 1))" "$1" | xz -dcq --single-stream >"$kernel" 2>/dev/null
  [ "$(head -c 4 "$kernel")" = $'\x7fELF' ]
}
