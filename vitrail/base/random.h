// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counter-based random numbers: Philox 4×32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3").
//
// Each number is a pure function of (key, counter).  A draw therefore depends on its purpose (seed, step, layer,
// sample, element) and not on the thread that makes it or on the order of draws.
#include <array>
#include <cstdint>
#include <string_view>

namespace vitrail {

// Returns one block of four random 32-bit words.
std::array<uint32_t, 4> philox(std::array<uint32_t, 2> key, std::array<uint32_t, 4> counter);

// Hashes parts such as (purpose, seed, step) to a 64-bit key: FNV-1a over the name and the little-endian bytes of a, b.
uint64_t random_key(std::string_view name, uint64_t a = 0, uint64_t b = 0);

// A sequence of random numbers.  Copyable; two streams with the same key and stream number give the same sequence.
class RandomStream {
 public:
  explicit RandomStream(uint64_t key, uint64_t stream = 0);
  uint32_t bits();   // 32 uniform random bits
  double uniform();  // uniform in [0, 1), 53 random bits
  double normal();   // N(0, 1), Box–Muller transform

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 4> block_{};
  int used_ = 4;  // words of block_ that have been returned
};

}  // namespace vitrail
