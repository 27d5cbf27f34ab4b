// SPDX-License-Identifier: Apache-2.0
// load PLUGIN.so ROUNDS: what NCCL does with a tuner, from a plain C program with a table made by
// hand. Prints what is wrong and ends with 1, or says nothing and ends with 0.
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Tuner interface, version 5 (plugin/nccl/abi/tuner_v5.h), said again in C.
typedef void (*logger)(int level, unsigned long subsystems, const char* file, int line,
                       const char* format, ...);
struct domains {
  int domains, fewest_ranks, most_ranks;
};
struct constants {
  double base_latency[7][3], step_latency[3][7][3], rest[5][4][3];
};
struct tuner {
  const char* name;
  int (*init)(void**, uint64_t, size_t, size_t, logger, struct domains*, struct constants*);
  int (*get_coll_info)(void*, int, size_t, int, float**, int, int, int, int*);
  int (*finalize)(void*);
};

enum { kAlgorithms = 7, kProtocols = 3, kAllReduce = 4, kTree = 0, kRing = 1, kLL = 0 };
static int lines;

static void fail(const char* what) {
  fprintf(stderr, "load: %s\n", what);
  exit(1);
}

static void count_line(int level, unsigned long subsystems, const char* file, int line,
                       const char* format, ...) {
  char text[1024];
  va_list arguments;
  (void)level, (void)subsystems, (void)file, (void)line;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (strncmp(text, "crosstie: ", 10) == 0) lines++;
}

// 4 nodes of 4 ranks, 64 KiB, NVLS off: NCCL would take the ring by 3 %.
static void ask(const struct tuner* tuner, void* context) {
  float table[kAlgorithms][kProtocols];
  int channels = 0;
  for (int a = 0; a < kAlgorithms; a++)
    for (int p = 0; p < kProtocols; p++) table[a][p] = -1.0f;
  table[kRing][kLL] = 55, table[kTree][kLL] = 57;
  if (tuner->get_coll_info(context, kAllReduce, 65536, 1, (float**)table, kAlgorithms, kProtocols,
                           0, &channels))
    fail("getCollInfo failed");
  if (!(table[kTree][kLL] > 0 && table[kTree][kLL] < table[kRing][kLL]))
    fail("a tie was not broken in favour of the tree");
  if (table[2][0] != -1.0f || channels != 0) fail("something else was written");
}

static void communicator(const struct tuner* tuner) {
  struct constants constants;
  struct domains domains = {4, 4, 4};
  void* context = &domains;
  memset(&constants, 0, sizeof constants);
  constants.base_latency[kRing][kLL] = 6.6;
  constants.step_latency[0][kRing][kLL] = 0.6;
  constants.step_latency[2][kRing][kLL] = 2.7;
  if (tuner->init(&context, 0x1234, 16, 4, count_line, &domains, &constants)) fail("init failed");
  if (context == NULL) fail("init gave no context");
  lines = 0;
  ask(tuner, context);
  ask(tuner, context);
  if (lines != 1) fail("one changed decision is not one line");
  if (tuner->finalize(context)) fail("finalize failed");
  if (tuner->finalize(NULL)) fail("finalize(NULL) failed");
  context = &domains;
  if (tuner->init(&context, 1, 16, 4, NULL, NULL, NULL)) fail("init without facts failed");
  if (context != NULL) fail("init without facts left a context");
  if (tuner->get_coll_info(NULL, kAllReduce, 1, 1, NULL, 0, 0, 0, NULL))
    fail("getCollInfo without a context failed");
}

int main(int argc, char** argv) {
  if (argc != 3) fail("usage: load PLUGIN.so ROUNDS");
  for (int round = atoi(argv[2]); round > 0; round--) {
    void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) fail(dlerror());
    const struct tuner* tuner = dlsym(library, "ncclTunerPlugin_v5");
    if (!tuner) fail(dlerror());
    if (strcmp(tuner->name, "crosstie")) fail("the name is not crosstie");
    communicator(tuner);
    communicator(tuner);
    if (dlclose(library)) fail(dlerror());
    // Linked to stay: reloading would leak libstdc++'s pool each time.
    if (!dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD)) fail("the plugin went with dlclose");
  }
  return 0;
}
