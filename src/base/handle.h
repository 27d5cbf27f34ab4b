// SPDX-License-Identifier: Apache-2.0
// The one owner of every C resource: move-only, closes once.
#pragma once
#include <unistd.h>

#include <utility>

namespace crosstie {

// Traits: `using type`, `static constexpr type none` (or none()), `static void close(type)`.
template <class Traits>
class Handle {
 public:
  using type = typename Traits::type;

  Handle() = default;
  explicit Handle(type raw) : raw_(raw) {}
  Handle(Handle&& other) noexcept : raw_(other.release()) {}
  Handle& operator=(Handle&& other) noexcept {
    reset(other.release());
    return *this;
  }
  ~Handle() { reset(); }

  explicit operator bool() const { return raw_ != Traits::none; }
  type get() const { return raw_; }
  type release() { return std::exchange(raw_, Traits::none); }
  void reset(type raw = Traits::none) {
    const type old = std::exchange(raw_, raw);
    if (old != Traits::none) Traits::close(old);
  }

 private:
  type raw_ = Traits::none;
};

struct FdTraits {
  using type = int;
  static constexpr int none = -1;
  static void close(int fd) { ::close(fd); }
};
using Fd = Handle<FdTraits>;

}  // namespace crosstie
