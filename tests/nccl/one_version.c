// SPDX-License-Identifier: Apache-2.0
// A plugin that offers one version of one interface alone: TABLE, an object of NCCL's that the
// whole plugin exports, of SIZE bytes. NCCL takes the newest that it finds.
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define NAME_OF(table) #table
#define NAME(table) NAME_OF(table)

__attribute__((aligned(8))) char TABLE[SIZE];

__attribute__((constructor)) static void take(void) {
  void* const whole = dlopen("libnccl-tuner-crosstie.so", RTLD_NOW | RTLD_LOCAL);
  const void* const table = whole ? dlsym(whole, NAME(TABLE)) : NULL;
  if (table == NULL) abort();
  memcpy(TABLE, table, SIZE);
}
