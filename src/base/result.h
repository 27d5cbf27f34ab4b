// SPDX-License-Identifier: Apache-2.0
// What can fail returns Result<T>; an Error says what, where and what to do in one line.
#pragma once
#include <fmt/format.h>

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace crosstie {

enum class Code {
  invalid,      // the caller's mistake: an argument, an option, a malformed file
  missing,      // a file, device, library or symbol that is not there
  io,           // the operating system said no
  timeout,      // a deadline passed
  peer,         // another rank died or broke the protocol
  exhausted,    // memory, descriptors, slots
  unsupported,  // right, but not here
  internal,     // a broken invariant of ours
};

struct Error {
  Code code = Code::internal;
  std::string text;
  int rank = -1;  // the rank at fault where one is known
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

template <class... A>
[[nodiscard]] tl::unexpected<Error> fail(Code code, fmt::format_string<A...> text, A&&... a) {
  return tl::unexpected<Error>(Error{code, fmt::format(text, std::forward<A>(a)...)});
}

// Hands a failed result's error to a caller whose result has another type.
template <class T>
[[nodiscard]] tl::unexpected<Error> pass(const Result<T>& failed) {
  return tl::unexpected<Error>(failed.error());
}

// The same with the place prepended: "FILE: what is wrong".
template <class T>
[[nodiscard]] tl::unexpected<Error> pass(const Result<T>& failed, std::string_view where) {
  Error e = failed.error();
  e.text = fmt::format("{}: {}", where, e.text);
  return tl::unexpected<Error>(std::move(e));
}

// Whose fault a failed system call is: Code::exhausted where errno says that this process or host
// has run out of something, else `otherwise`.
Code blame(Code otherwise);
// A failed system call, with errno's own words.
[[nodiscard]] tl::unexpected<Error> fail_errno(Code code, std::string_view what);

}  // namespace crosstie
