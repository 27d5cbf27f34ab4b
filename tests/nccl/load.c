// SPDX-License-Identifier: Apache-2.0
// load PLUGIN.so ROUNDS: what NCCL does with a tuner of each version, from a plain C program with
// tables made by hand. Prints what is wrong and ends with 1, or says nothing and ends with 0.
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
    if ((algorithm < 0) != (protocol < 0)) fail("half an answer");
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

// 4 nodes of 4 ranks, 64 KiB, NVLS off: NCCL would take the ring by 3 %. Only with NCCL's
// latencies, from version 5 on, can a tuner say that both wait for most of the time.
static void ask_of_waiting(const struct tuner* tuner, void* context) {
  float table[kAlgorithms][kProtocols];
  int channels = 0;
  fill(table);
  table[kRing][kLL] = 55, table[kTree][kLL] = 57;
  if (ask(tuner, context, table, &channels)) fail("getCollInfo failed");
  if (version >= 5 && !(table[kTree][kLL] > 0 && table[kTree][kLL] < table[kRing][kLL]))
    fail("a tie was not broken in favour of the tree");
  if (version < 5 && table[kTree][kLL] != 57) fail("a tie was broken without NCCL's latencies");
  if (table[2][0] != -1.0f || channels != 0) fail("something else was written");
}

// What needs the table alone: from version 3 on.
static void ask_of_nvls_tree(const struct tuner* tuner, void* context) {
  float table[kAlgorithms][kProtocols];
  int channels = 0;
  fill(table);
  table[kNvlsTree][kSimple] = 1000, table[kRing][kSimple] = 1010;
  if (ask(tuner, context, table, &channels)) fail("getCollInfo failed");
  const float ring = table[kRing][kSimple];
  if (version >= 3 && !(ring > 0 && ring < table[kNvlsTree][kSimple]))
    fail("a tie was not broken in favour of the ring");
  if (version < 3 && ring != 1010) fail("a table that was not handed over was written");
  if (table[4][kLL] != -1.0f || channels != 0) fail("something else was written");
}

static void communicator(const struct tuner* tuner) {
  struct constants constants;
  struct domains domains = {4, 4, 4};
  void* context = &domains;
  memset(&constants, 0, sizeof constants);
  constants.base_latency[kRing][kLL] = 6.6;
  constants.step_latency[0][kRing][kLL] = 0.6;
  constants.step_latency[2][kRing][kLL] = 2.7;
  if (init(tuner, &context, &domains, &constants)) fail("init failed");
  if (context == NULL || context == &domains) fail("init gave no context");
  lines = 0;
  ask_of_waiting(tuner, context);
  ask_of_waiting(tuner, context);
  if (lines != (version >= 5)) fail("one changed decision is not one line");
  ask_of_nvls_tree(tuner, context);
  if (tuner->finalize(context)) fail("finalize failed");
  if (tuner->finalize(NULL)) fail("finalize(NULL) failed");
  context = &domains;
  if (init(tuner, &context, NULL, NULL)) fail("init without facts failed");
  if (context == &domains) fail("init left what was there as its context");
  if (context != NULL) ask_of_nvls_tree(tuner, context);
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
