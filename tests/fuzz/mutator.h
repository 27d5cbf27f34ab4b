// SPDX-License-Identifier: Apache-2.0
// Makes inputs of inputs: bytes, words of the dictionary, numbers, pieces and lines changed,
// inserted, doubled, dropped, joined with those of another. The same seed makes the same.
#pragma once
#include "inputs.h"
#include "knobs.h"

namespace crosstie::fuzz {

class Mutator {
 public:
  Mutator(const Inputs& inputs, uint64_t seed) : inputs_(inputs), random_(seed) {}
  std::string next();

 private:
  size_t below(size_t limit) { return limit == 0 ? 0 : static_cast<size_t>(random_() % limit); }
  const std::string& any(const std::vector<std::string>& list) { return list[below(list.size())]; }
  struct Piece {
    size_t at, bytes;
  };
  Piece piece(const std::string& text, size_t most);
  Piece line(const std::string& text);

  Piece quoted(const std::string& text);
  const std::string& longer_of_two();

  void change_byte(std::string& text);
  void insert_bytes(std::string& text);
  void erase_piece(std::string& text);
  void double_piece(std::string& text);
  void put_word(std::string& text);
  void put_integer(std::string& text);
  void change_number(std::string& text);
  void change_quoted(std::string& text);
  void move_line(std::string& text);
  void join(std::string& text);

  const Inputs& inputs_;
  test::Random random_;
};

}  // namespace crosstie::fuzz
