// SPDX-License-Identifier: Apache-2.0
// Shared libraries that are opened at run time: their absence is ordinary and has a reason.
#pragma once
#include <dlfcn.h>

#include <string>

#include "base/handle.h"
#include "base/result.h"

namespace crosstie {

struct LibraryTraits {
  using type = void*;
  static constexpr type none = nullptr;
  static void close(type library) { ::dlclose(library); }
};
using Library = Handle<LibraryTraits>;

// Drivers start threads and leave memory and exit handlers behind, so that unmapping them is
// never safe: once opened they stay (RTLD_NODELETE), and closing only drops our claim.
inline Result<Library> open_library(const char* file) {
  void* const library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) return fail(Code::missing, "{}", ::dlerror());
  return Library(library);
}

// Sets `entry` to the function of that name.
template <class F>
Status find_symbol(const Library& library, const char* symbol, F*& entry) {
  void* const found = ::dlsym(library.get(), symbol);
  if (found == nullptr) return fail(Code::missing, "the library has no {}; it is too old", symbol);
  entry = reinterpret_cast<F*>(found);
  return {};
}

// The same for what only newer libraries have: null where this one is older.
template <class F>
void find_optional(const Library& library, const char* symbol, F*& entry) {
  entry = reinterpret_cast<F*>(::dlsym(library.get(), symbol));
}

// find_symbol(), put off: for chains of and_then().
template <class F>
auto find(const Library& library, const char* symbol, F*& entry) {
  return [&library, symbol, &entry] { return find_symbol(library, symbol, entry); };
}

// A driver that is there: its functions, which tests replace one by one, and what keeps them
// valid.
template <class Functions>
struct Driver {
  Functions functions;
  std::string version;
  Library library;
};

}  // namespace crosstie
