// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/random.h"

#include <cmath>
#include <numbers>

namespace vitrail {

std::array<uint32_t, 4> philox(std::array<uint32_t, 2> key, std::array<uint32_t, 4> counter) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(product0)};
    key[0] += 0x9E3779B9;  // Weyl sequence: the golden ratio
    key[1] += 0xBB67AE85;  // √3 − 1
  }
  return counter;
}

uint64_t random_key(std::string_view name, uint64_t a, uint64_t b) {
  uint64_t hash = 0xcbf29ce484222325;                                          // FNV offset basis
  auto mix = [&hash](uint8_t byte) { hash = (hash ^ byte) * 0x100000001b3; };  // FNV prime
  for (const char c : name) mix(static_cast<uint8_t>(c));
  for (const uint64_t word : {a, b}) {
    for (int i = 0; i < 8; ++i) mix(static_cast<uint8_t>(word >> (8 * i)));
  }
  return hash;
}

RandomStream::RandomStream(uint64_t key, uint64_t stream)
    : key_{static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)},
      counter_{0, 0, static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)} {}

uint32_t RandomStream::bits() {
  if (used_ == 4) {
    block_ = philox(key_, counter_);
    if (++counter_[0] == 0) ++counter_[1];
    used_ = 0;
  }
  return block_[used_++];
}

double RandomStream::uniform() {
  const uint64_t high = bits() >> 5, low = bits() >> 6;
  return static_cast<double>((high << 26) | low) * 0x1p-53;
}

double RandomStream::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));  // 1 - u is in (0, 1]
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

}  // namespace vitrail
