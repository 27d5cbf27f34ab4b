// SPDX-License-Identifier: Apache-2.0
// Messages for people. A Log is handed down by the doors (command, library, plugin); nothing
// in the rooms writes to stdout or stderr by itself.
#pragma once
#include <fmt/format.h>

#include <functional>
#include <string_view>
#include <utility>

namespace crosstie {

enum class Level { none, error, warn, info, debug };

class Log {
 public:
  using Sink = std::function<void(Level, std::string_view)>;

  Log() = default;  // says nothing
  Log(Level threshold, Sink sink) : threshold_(threshold), sink_(std::move(sink)) {}

  bool says(Level level) const { return sink_ && level <= threshold_; }
  template <class... A>
  void error(fmt::format_string<A...> text, A&&... a) const {
    write(Level::error, text, std::forward<A>(a)...);
  }
  template <class... A>
  void warn(fmt::format_string<A...> text, A&&... a) const {
    write(Level::warn, text, std::forward<A>(a)...);
  }
  template <class... A>
  void info(fmt::format_string<A...> text, A&&... a) const {
    write(Level::info, text, std::forward<A>(a)...);
  }
  template <class... A>
  void debug(fmt::format_string<A...> text, A&&... a) const {
    write(Level::debug, text, std::forward<A>(a)...);
  }

 private:
  template <class... A>
  void write(Level level, fmt::format_string<A...> text, A&&... a) const {
    if (says(level)) sink_(level, fmt::format(text, std::forward<A>(a)...));
  }

  Level threshold_ = Level::none;
  Sink sink_;
};

// "crosstie: warning: TEXT" on stderr, made printable; one write(2) a line so that ranks
// do not mix theirs.
Log stderr_log(Level threshold);

}  // namespace crosstie
