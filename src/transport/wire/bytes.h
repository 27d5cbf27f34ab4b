// SPDX-License-Identifier: Apache-2.0
// Plain structures as bytes. What travels is in the host's byte order: a peer of the other
// order does not recognise the magic number at the front of a handshake.
#pragma once
#include <sys/random.h>

#include <bit>
#include <cstring>
#include <span>
#include <type_traits>

#include "transport/endpoint.h"

namespace crosstie::wire {

template <class T>
concept Plain = std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T>;

template <Plain T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

template <Plain T>
Blob blob_of(const T& value) {
  const auto bytes = bytes_of(value);
  return Blob(bytes.begin(), bytes.end());
}

// False where there are too few or too many bytes.
template <Plain T>
bool read(std::span<const std::byte> bytes, T& value) {
  if (bytes.size() != sizeof(T)) return false;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return true;
}

// Four letters as the first word of a structure.
constexpr uint32_t four_letters(const char (&letters)[5]) {
  uint32_t word = 0;
  for (int i = 3; i >= 0; i--) word = word << 8 | static_cast<uint8_t>(letters[i]);
  return word;
}

// Tells one Worker from all others, past and present.
inline uint64_t make_nonce() {
  uint64_t nonce = 0;
  // Up to 256 bytes are never short (getrandom(2)).
  [[maybe_unused]] const auto got = getrandom(&nonce, sizeof nonce, 0);
  return nonce;
}

}  // namespace crosstie::wire
