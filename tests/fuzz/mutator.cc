// SPDX-License-Identifier: Apache-2.0
#include "mutator.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

namespace crosstie::fuzz {
namespace {

// What counts and sizes go wrong at.
constexpr uint64_t kIntegers[] = {
    0,      1,          2,       0x7f,       0x80,       0xff,       0x100,       0x7fff,
    0x8000, 0xffff,     0x10000, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, ~0ull >> 1,
    ~0ull,  1ull << 63, 4095,    4096,       4097,       256,        257,         200};
constexpr const char* kNumbers[] = {"0",
                                    "-1",
                                    "1",
                                    "2147483647",
                                    "2147483648",
                                    "4294967295",
                                    "4294967296",
                                    "9223372036854775807",
                                    "9223372036854775808",
                                    "18446744073709551616",
                                    "1e308",
                                    "1e999",
                                    "-0.0",
                                    "nan",
                                    "inf",
                                    "0x10",
                                    "1e-300",
                                    "999999999",
                                    "00000000000000000001"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::string Mutator::next() {
  using Change = void (Mutator::*)(std::string&);
  // Text that still has its form gets beyond the parser.
  constexpr Change kGentle[] = {&Mutator::change_number, &Mutator::change_quoted,
                                &Mutator::move_line};
  constexpr Change kRough[] = {
      &Mutator::change_byte, &Mutator::insert_bytes, &Mutator::erase_piece, &Mutator::double_piece,
      &Mutator::put_word,    &Mutator::put_integer,  &Mutator::join};
  const bool gentle = below(2) == 0;
  const std::span<const Change> changes =
      gentle ? std::span(kGentle) : std::span<const Change>(kRough);
  std::string text;
  if (!inputs_.corpus.empty() && below(50) != 0) text = longer_of_two();
  // Mostly few changes, since many rarely get beyond the first check.
  for (size_t times = 1 + below(1 + below(12)); times > 0; times--)
    (this->*changes[below(changes.size())])(text);
  if (text.size() > kMostInput) text.resize(kMostInput);
  return text;
}

// Short inputs of a corpus are mostly of one mistake each.
const std::string& Mutator::longer_of_two() {
  const std::string &one = any(inputs_.corpus), &other = any(inputs_.corpus);
  return one.size() < other.size() ? other : one;
}

Mutator::Piece Mutator::piece(const std::string& text, size_t most) {
  const size_t at = below(text.size() + 1);
  return {at, below(std::min(most, text.size() - at) + 1)};
}

Mutator::Piece Mutator::line(const std::string& text) {
  const size_t inside = below(text.size());
  const size_t at = inside == 0 ? 0 : text.rfind('\n', inside - 1) + 1;  // npos + 1 is 0
  const size_t end = text.find('\n', at);
  return {at, (end == std::string::npos ? text.size() : end + 1) - at};
}

void Mutator::change_byte(std::string& text) {
  if (text.empty()) return;
  char& byte = text[below(text.size())];
  byte = below(2) ? static_cast<char>(byte ^ (1 << below(8))) : static_cast<char>(below(256));
}

void Mutator::insert_bytes(std::string& text) {
  std::string bytes(1 + below(16), static_cast<char>(below(256)));
  if (below(2))
    for (char& byte : bytes) byte = static_cast<char>(below(256));
  text.insert(below(text.size() + 1), bytes);
}

void Mutator::erase_piece(std::string& text) {
  const Piece gone = piece(text, below(4) ? 32 : text.size());
  text.erase(gone.at, gone.bytes);
}

void Mutator::double_piece(std::string& text) {
  const Piece twice = piece(text, below(4) ? 64 : text.size());
  const std::string copy = text.substr(twice.at, twice.bytes);
  text.insert(below(text.size() + 1), copy);
}

void Mutator::put_word(std::string& text) {
  if (inputs_.dictionary.empty()) return insert_bytes(text);
  const std::string& word = any(inputs_.dictionary);
  const size_t at = below(text.size() + 1);
  text.replace(at, below(2) ? std::min(word.size(), text.size() - at) : 0, word);
}

void Mutator::put_integer(std::string& text) {
  const size_t bytes = size_t{1} << below(4);
  if (text.size() < bytes) return;
  const uint64_t number = kIntegers[below(std::size(kIntegers))];
  char raw[8];
  std::memcpy(raw, &number, sizeof raw);
  if (below(2)) std::reverse(raw, raw + bytes);
  text.replace(below(text.size() - bytes + 1), bytes, raw, bytes);
}

void Mutator::change_number(std::string& text) {
  const size_t from = below(text.size());
  const auto first =
      std::find_if(text.begin() + static_cast<ptrdiff_t>(from), text.end(), is_digit);
  if (first == text.end()) return;
  const auto last = std::find_if_not(first, text.end(), is_digit);
  text.replace(first, last, kNumbers[below(std::size(kNumbers))]);
}

// What stands between two quotation marks becomes what stands between two others, or a number.
void Mutator::change_quoted(std::string& text) {
  const Piece here = quoted(text);
  if (here.at == 0) return;
  const std::string& other = inputs_.corpus.empty() ? text : any(inputs_.corpus);
  const Piece there = quoted(other);
  const std::string value = below(2) ? other.substr(there.at, there.bytes)
                                     : std::string(kNumbers[below(std::size(kNumbers))]);
  text.replace(here.at, here.bytes, value);
}

Mutator::Piece Mutator::quoted(const std::string& text) {
  const size_t open = text.find('"', below(text.size()));
  const size_t close = open == std::string::npos ? open : text.find('"', open + 1);
  return close == std::string::npos ? Piece{0, 0} : Piece{open + 1, close - open - 1};
}

void Mutator::move_line(std::string& text) {
  if (text.empty()) return;
  const Piece moved = line(text);
  const std::string copy = text.substr(moved.at, moved.bytes);
  if (below(2)) text.erase(moved.at, moved.bytes);
  text.insert(text.empty() ? 0 : line(text).at, copy);
}

void Mutator::join(std::string& text) {
  if (inputs_.corpus.empty()) return;
  const std::string& other = any(inputs_.corpus);
  const Piece kept = piece(other, other.size());
  text.resize(below(text.size() + 1));
  text += other.substr(kept.at, kept.bytes);
}

}  // namespace crosstie::fuzz
