// SPDX-License-Identifier: Apache-2.0
// load PLUGIN.so ROUNDS: what NCCL does with a tuner of each version, from a plain C program with
// tables made by hand. The system is named: 4 hosts of 4 GPUs of a DGX H100 each. Prints what is
// wrong and ends with 1, or says nothing and ends with 0.
#define _POSIX_C_SOURCE 200809L  // setenv
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The tuner interfaces (plugin/nccl/abi/tuner_v*.h), said again in C.
typedef void (*logger)(int level, unsigned long subsystems, const char* file, int line,
                       const char* format, ...);
struct domains {
  int domains, fewest_ranks, most_ranks;
};
struct constants {
  double base_latency[7][3], step_latency[3][7][3], rest[5][5][3];
};
typedef int (*init_by_size)(size_t, size_t, logger, void**);
typedef int (*init_by_id)(void**, uint64_t, size_t, size_t, logger, struct domains*,
                          struct constants*);
typedef int (*ask_v2)(void*, int, size_t, int, int, int, int*, int*, int*);
typedef int (*ask_v3)(void*, int, size_t, int, float**, int, int, int*);
typedef int (*ask_v4)(void*, int, size_t, int, float**, int, int, int, int*);
struct tuner {
  const char* name;
  void (*init)(void);
  void (*get_coll_info)(void);
  int (*finalize)(void*);
  void (*get_chunk_size)(void);  // from version 6 on
};

enum { kAlgorithms = 7, kProtocols = 3, kAllReduce = 4, kTree = 0, kRing = 1, kNvlsTree = 5 };
enum { kLL = 0, kSimple = 2 };
static int lines, version;

static void fail(const char* what) {
  fprintf(stderr, "load: version %d: %s\n", version, what);
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

static int init(const struct tuner* tuner, void** context, struct domains* domains,
                struct constants* constants) {
  if (version < 5) return ((init_by_size)tuner->init)(16, 4, count_line, context);
  return ((init_by_id)tuner->init)(context, 0x1234, 16, 4, count_line, domains, constants);
}

// NCCL's own reader of version 2 hands over no table, and sets what comes back to 0.
static int ask(const struct tuner* tuner, void* context, float table[kAlgorithms][kProtocols],
               int* channels) {
  float** costs = (float**)table;
  if (version == 2) {
    int algorithm = -1, protocol = -1;
    const int result = ((ask_v2)tuner->get_coll_info)(context, kAllReduce, 65536, 0, 0, 1,
                                                      &algorithm, &protocol, channels);
    if (context && (algorithm < 0 || protocol < 0)) fail("no answer, or half of one");
    return result;
  }
  if (version == 3)
    return ((ask_v3)tuner->get_coll_info)(context, kAllReduce, 65536, 1, costs, kAlgorithms,
                                          kProtocols, channels);
  return ((ask_v4)tuner->get_coll_info)(context, kAllReduce, 65536, 1, costs, kAlgorithms,
                                        kProtocols, 0, channels);
}

static void fill(float table[kAlgorithms][kProtocols]) {
  for (int a = 0; a < kAlgorithms; a++)
    for (int p = 0; p < kProtocols; p++) table[a][p] = -1.0f;
}

static int wins(float table[kAlgorithms][kProtocols], int algorithm, int protocol) {
  return table[algorithm][protocol] > 0 && table[algorithm][protocol] < 1;
}

// 64 KiB: NCCL would take the ring, with steps between all 16 ranks, by 3 %.
static void ask_of_a_tree(const struct tuner* tuner, void* context) {
  float table[kAlgorithms][kProtocols];
  int channels = 0;
  fill(table);
  table[kRing][kLL] = 55, table[kTree][kLL] = 57;
  if (ask(tuner, context, table, &channels)) fail("getCollInfo failed");
  if (version >= 3 && !wins(table, kTree, kLL)) fail("the tree does not win");
  if (version == 2 && table[kTree][kLL] != 57) fail("a table that was not handed over was written");
  if (table[kRing][kLL] != 55 || table[2][0] != -1.0f || channels != 0)
    fail("something else was written");
}

static void ask_of_one(const struct tuner* tuner, void* context) {
  float table[kAlgorithms][kProtocols];
  int channels = 0;
  fill(table);
  table[kRing][kSimple] = 1010;
  if (ask(tuner, context, table, &channels)) fail("getCollInfo failed");
  if (version >= 3 && !wins(table, kRing, kSimple)) fail("what alone may run does not win");
  if (table[kNvlsTree][kSimple] != -1.0f || channels != 0) fail("something else was written");
}

static void communicator(const struct tuner* tuner) {
  struct constants constants;
  struct domains domains = {4, 4, 4};
  void* context = &domains;
  memset(&constants, 0, sizeof constants);
  if (init(tuner, &context, &domains, &constants)) fail("init failed");
  if (context == NULL || context == &domains) fail("init gave no context");
  lines = 0;
  ask_of_a_tree(tuner, context);
  ask_of_a_tree(tuner, context);
  if (lines != 1) fail("one changed decision is not one line");
  ask_of_one(tuner, context);
  if (tuner->finalize(context)) fail("finalize failed");
  if (tuner->finalize(NULL)) fail("finalize(NULL) failed");
  context = &domains;
  if (init(tuner, &context, NULL, NULL)) fail("init without facts failed");
  if (context == &domains) fail("init left what was there as its context");
  if (context != NULL) ask_of_a_tree(tuner, context);
  if (tuner->finalize(context)) fail("finalize failed");
  float none[kAlgorithms][kProtocols];
  fill(none);
  if (ask(tuner, NULL, none, NULL)) fail("getCollInfo without a context failed");
}

static void each_version(void* library) {
  for (version = 2; version <= 7; version++) {
    char symbol[32];
    snprintf(symbol, sizeof symbol, "ncclTunerPlugin_v%d", version);
    const struct tuner* tuner = dlsym(library, symbol);
    if (!tuner) fail(dlerror());
    if (strcmp(tuner->name, "crosstie")) fail("the name is not crosstie");
    if (version >= 6 && tuner->get_chunk_size) fail("NCCL's chunk size does not stand");
    communicator(tuner);
    communicator(tuner);
  }
}

int main(int argc, char** argv) {
  if (argc != 3) fail("usage: load PLUGIN.so ROUNDS");
  setenv("CROSSTIE_PROFILE", "dgx-h100", 1);
  for (int round = atoi(argv[2]); round > 0; round--) {
    void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) fail(dlerror());
    each_version(library);
    if (dlclose(library)) fail(dlerror());
    // Linked to stay: reloading would leak libstdc++'s pool each time.
    if (!dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD)) fail("the plugin went with dlclose");
  }
  return 0;
}
