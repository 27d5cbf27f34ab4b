// SPDX-License-Identifier: Apache-2.0
#include "base/name_filter.h"

#include <criterion/criterion.h>

using crosstie::NameFilter;

Test(name_filter, names_are_chosen_as_nccl_does) {
  struct Row {
    const char *filter, *name;
    bool allowed;
  };
  for (const Row& row : {Row{"", "eth0", true},
                         {"eth", "eth0", true},
                         {"eth", "ib0", false},
                         {"eth,ib", "ib0", true},
                         {"=eth", "eth0", false},
                         {"=eth0", "eth0", true},
                         {"=eth0", "eth01", false},
                         {"^docker,lo", "docker0", false},
                         {"^docker,lo", "eth0", true},
                         {"^=eth0", "eth0", false},
                         {"^=eth0", "eth01", true},
                         {"=eth0:1", "eth0:1", true},
                         {"=eth0:1", "eth0", false}})
    cr_expect(NameFilter(row.filter).allows(row.name) == row.allowed, "'%s' of '%s'", row.name,
              row.filter);
}

Test(name_filter, a_port_may_be_chosen) {
  struct Row {
    const char *filter, *name;
    uint32_t port;
    bool allowed;
  };
  for (const Row& row : {Row{"mlx5", "mlx5_3", 2, true},
                         {"mlx5_0:1", "mlx5_0", 1, true},
                         {"mlx5_0:1", "mlx5_0", 2, false},
                         {"mlx5:2", "mlx5_7", 2, true},
                         {"=mlx5_0:1,mlx5_1:1", "mlx5_1", 1, true},
                         {"=mlx5_0:1,mlx5_1:1", "mlx5_10", 1, false},
                         {"^mlx5_0:1", "mlx5_0", 1, false},
                         {"^mlx5_0:1", "mlx5_0", 2, true},
                         {"^=mlx5_3,mlx5_4", "mlx5_4", 1, false},
                         {"^=mlx5_3,mlx5_4", "mlx5_40", 1, true},
                         {"mlx5_0:x", "mlx5_0", 1, false}})
    cr_expect(NameFilter(row.filter).allows(row.name, row.port) == row.allowed,
              "'%s' port %u of '%s'", row.name, row.port, row.filter);
}
