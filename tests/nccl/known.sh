# SPDX-License-Identifier: Apache-2.0
# Sourced by tests that give the stock NCCL the machines that we know by name, as files.

# Those that NCCL runs on, and of which two hosts are two nodes.
known() {
  grep -L -e '^gcn' -e '^hosts_in_domain' "$srcdir"/data/machines/*.toml | sed 's,.*/,,; s,\.toml$,,'
}

# write_known NAME FILE. NCCL asks CPUID for family and model where a file tells none, as of ARM's CPUs,
# and here finds those of another CPU.
write_known() {
  "$builddir/crosstie" topo -i "$1" -o "$2" &&
    sed -i 's/vendor="ARM"/& familyid="8" modelid="3407"/' "$2"
}

# 0 where the driver lets no GPU at another's memory, else 1.
has_peers() { ! grep -q '^peer_access = false' "$srcdir/data/machines/$1.toml" && echo 1 || echo 0; }
