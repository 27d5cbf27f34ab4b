// SPDX-License-Identifier: Apache-2.0
// Redirects the CUDA runtime that is linked into a mapped libnccl, in this process's memory
// only. The runtime's functions are local symbols there, out of reach of LD_PRELOAD, so each
// one's first instruction is replaced by a jump: to our function of the same name, or, where
// we have none, to a stub that logs the name and returns an error. Nothing of the original
// runtime runs apart from its registration tables.
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>
#include "rig.h"

namespace {
// The attached library: where it is mapped, and the symbol table of its file.
struct Image {
  std::string path;
  uintptr_t base = 0, low = UINTPTR_MAX, high = 0;
  const char* names = nullptr;
  std::map<std::string, const Elf64_Sym*> by_name;
  std::map<uintptr_t, const Elf64_Sym*> by_address;
};
Image& image() {  // needed before this library's static variables are constructed
  static auto* i = new Image;
  return *i;
}

int find_image(dl_phdr_info* info, size_t, void* path_part) {
  if (!info->dlpi_name || !strstr(info->dlpi_name, (const char*)path_part)) return 0;
  Image& im = image();
  im.path = info->dlpi_name;
  im.base = info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const auto& p = info->dlpi_phdr[i];
    if (p.p_type != PT_LOAD) continue;
    im.low = std::min(im.low, im.base + p.p_vaddr);
    im.high = std::max(im.high, im.base + p.p_vaddr + p.p_memsz);
  }
  return 1;
}

const char* map_file(const char* path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  struct stat st;
  void* file = MAP_FAILED;
  if (fd >= 0 && !fstat(fd, &st)) file = mmap(nullptr, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (fd >= 0) close(fd);
  return file == MAP_FAILED ? nullptr : (const char*)file;
}

void add_symbols(const char* file, const Elf64_Shdr& table, const Elf64_Shdr& strings) {
  Image& im = image();
  im.names = file + strings.sh_offset;
  auto* symbol = (const Elf64_Sym*)(file + table.sh_offset);
  for (const Elf64_Sym* end = symbol + table.sh_size / sizeof *symbol; symbol < end; symbol++) {
    const int type = ELF64_ST_TYPE(symbol->st_info);
    if ((type != STT_FUNC && type != STT_OBJECT) || symbol->st_shndx == SHN_UNDEF) continue;
    im.by_name.emplace(im.names + symbol->st_name, symbol);
    im.by_address.emplace(im.base + symbol->st_value, symbol);
  }
}

// The file stays mapped: the tables point into it.
bool read_symbols() {
  const char* file = map_file(image().path.c_str());
  if (!file) return false;
  auto* header = (const Elf64_Ehdr*)file;
  if (memcmp(header->e_ident, ELFMAG, SELFMAG) || header->e_machine != EM_X86_64) return false;
  auto* section = (const Elf64_Shdr*)(file + header->e_shoff);
  for (int i = 0; i < header->e_shnum; i++)
    if (section[i].sh_type == SHT_SYMTAB)
      add_symbols(file, section[i], section[section[i].sh_link]);
  return !image().by_name.empty();
}

// ---- redirection --------------------------------------------------------------
constexpr size_t kJumpBytes = 5, kTrampolineBytes = 32, kPage = 4096;

struct Hook {
  uintptr_t at;
  const char* name;
  void* to;  // null: not emulated
};

bool is_runtime_function(const std::string& name, const Elf64_Sym* symbol) {
  // Pure computation on its arguments, and the tables of registered kernels.
  static const std::set<std::string> keep = {"cudaCreateChannelDesc", "cudaGetExportTable"};
  const bool api =
      name.size() > 4 && name.starts_with("cuda") && isupper(name[4]) && !keep.count(name);
  const bool launch = name == "__cudaLaunchKernel" || name == "__cudaLaunchKernel_ptsz";
  return (api || launch) && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
         symbol->st_size >= kJumpBytes;
}

// This library's function of that name, not one of another CUDA runtime in the process.
void* own_function(const char* name) {
  static Dl_info self;
  static void* handle =
      dladdr((void*)&rig_attach, &self) ? dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD) : nullptr;
  void* found = handle ? dlsym(handle, name) : nullptr;
  Dl_info owner;
  return found && dladdr(found, &owner) && owner.dli_fbase == self.dli_fbase ? found : nullptr;
}

std::vector<Hook> find_hooks() {
  std::vector<Hook> hooks;
  std::set<uintptr_t> seen;  // functions have aliases
  for (auto& [name, symbol] : image().by_name) {
    const uintptr_t at = image().base + symbol->st_value;
    if (!is_runtime_function(name, symbol) || !seen.insert(at).second) continue;
    const char* lasting = image().names + symbol->st_name;
    hooks.push_back({at, lasting, own_function(lasting)});
  }
  return hooks;
}

// Pages near enough for a jump with a 32-bit offset from anywhere in the image.
uint8_t* near_pages(size_t bytes) {
  const uintptr_t step = 1 << 20, limit = 1 << 30;
  for (uintptr_t d = step; d < limit; d += step)
    for (uintptr_t at : {(image().high + d) & ~(step - 1), (image().low - d) & ~(step - 1)}) {
      void* p = mmap((void*)at, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
      if (p == (void*)at) return (uint8_t*)p;
      if (p != MAP_FAILED) munmap(p, bytes);  // an old kernel that takes the address as a hint
    }
  return nullptr;
}

uint8_t* emit(uint8_t* p, std::initializer_list<uint8_t> opcode) {
  return std::copy(opcode.begin(), opcode.end(), p);
}
uint8_t* emit(uint8_t* p, const void* value) {
  memcpy(p, &value, sizeof value);
  return p + sizeof value;
}

uint64_t unsupported_calls;
}  // namespace

extern "C" {
// Reached from a trampoline, with the name of the function that was called.
int rig_unsupported(const char* name) {
  __atomic_add_fetch(&unsupported_calls, 1, __ATOMIC_RELAXED);
  rig::logf(0, "UNSUPPORTED CUDA runtime call %s", name);
  return 801;  // cudaErrorNotSupported
}
uint64_t rig_unsupported_count() { return __atomic_load_n(&unsupported_calls, __ATOMIC_RELAXED); }
}

namespace {
void write_trampoline(uint8_t* p, const Hook& hook) {
  if (!hook.to) p = emit(emit(p, {0x48, 0xbf}), hook.name);  // mov $name, %rdi
  p = emit(emit(p, {0x48, 0xb8}),
           hook.to ? hook.to : (const void*)&rig_unsupported);  // mov $to, %rax
  emit(p, {0xff, 0xe0});                                        // jmp *%rax
}

bool write_jump(uintptr_t at, const uint8_t* to) {
  const uintptr_t from = at & ~(kPage - 1), end = (at + kJumpBytes + kPage - 1) & ~(kPage - 1);
  if (mprotect((void*)from, end - from, PROT_READ | PROT_WRITE | PROT_EXEC)) return false;
  const auto offset = (int32_t)((intptr_t)to - (intptr_t)(at + kJumpBytes));
  *(uint8_t*)at = 0xe9;  // jmp
  memcpy((uint8_t*)at + 1, &offset, sizeof offset);
  return !mprotect((void*)from, end - from, PROT_READ | PROT_EXEC);
}

bool redirect(const std::vector<Hook>& hooks) {
  const size_t bytes = (hooks.size() * kTrampolineBytes + kPage - 1) & ~(kPage - 1);
  uint8_t* pages = near_pages(bytes);
  if (!pages) return false;
  for (size_t i = 0; i < hooks.size(); i++)
    write_trampoline(pages + i * kTrampolineBytes, hooks[i]);
  if (mprotect(pages, bytes, PROT_READ | PROT_EXEC)) return false;
  for (size_t i = 0; i < hooks.size(); i++)
    if (!write_jump(hooks[i].at, pages + i * kTrampolineBytes)) return false;
  return true;
}
}  // namespace

extern "C" {
void* rig_symbol(const char* name, size_t* size) {
  auto it = image().by_name.find(name);
  if (it == image().by_name.end()) return nullptr;
  if (size) *size = it->second->st_size;
  return (void*)(image().base + it->second->st_value);
}

const char* rig_symbol_at(const void* address) {
  auto it = image().by_address.find((uintptr_t)address);
  return it == image().by_address.end() ? nullptr : image().names + it->second->st_name;
}

int rig_attach(const char* path_part) {
  if (image().base) return 0;
  if (!dl_iterate_phdr(find_image, (void*)path_part)) return -1;
  const char* path = image().path.c_str();
  if (!read_symbols()) {
    rig::logf(0, "no .symtab in %s", path);
    return -1;
  }
  const std::vector<Hook> hooks = find_hooks();
  if (!redirect(hooks)) {
    rig::logf(0, "cannot redirect the CUDA runtime in %s", path);
    return -1;
  }
  const auto emulated =
      std::count_if(hooks.begin(), hooks.end(), [](const Hook& h) { return h.to; });
  rig::logf(1, "attached to %s: %zu runtime entry points redirected, %zd emulated", path,
            hooks.size(), emulated);
  return (int)hooks.size();
}

// For a program that is linked against libnccl and has this library preloaded.
__attribute__((constructor)) static void attach_at_load() {
  if (!getenv("NCCLRIG_NO_AUTO")) rig_attach("libnccl.so");
}
}

namespace rig {
int env_int(const char* name, int otherwise) {
  const char* s = getenv(name);
  return s && *s ? atoi(s) : otherwise;
}

void logf(int level, const char* format, ...) {
  static const int limit = env_int("NCCLRIG_LOG", 0);
  if (level > limit) return;
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  fprintf(stderr, "[rig %d] %s\n", (int)getpid(), text);
}
}  // namespace rig
