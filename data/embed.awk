# SPDX-License-Identifier: Apache-2.0
# Makes the source file that holds the machine descriptions given as arguments.
function close_entry() { if (open) print ")toml\"},"; open = 1 }
BEGIN {
  print "// Generated from data/machines by data/embed.awk."
  print "#include <array>"
  print "#include \"topology/format/formats.h\""
  print "namespace crosstie {"
  print "namespace {"
  printf "constexpr std::array<KnownMachine, %d> kMachines = {{\n", ARGC - 1
}
FNR == 1 {
  close_entry()
  name = FILENAME
  sub(/.*\//, "", name)
  sub(/\.toml$/, "", name)
  printf "{\"%s\", R\"toml(", name
}
{ print }
END {
  close_entry()
  print "}};"
  print "}  // namespace"
  print "std::span<const KnownMachine> known_machines() { return kMachines; }"
  print "}  // namespace crosstie"
}
