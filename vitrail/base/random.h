// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counter-based random numbers: Philox 4×32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3").
//
// A number is a pure function of (key, counter), so what is drawn depends on what it is drawn for (seed, step, layer,
// sample, element) and never on which thread drew it or in which order.
#include <array>
#include <cstdint>
#include <string_view>

namespace vitrail {

// One block of four 32-bit words.
std::array<uint32_t, 4> philox(std::array<uint32_t, 2> key, std::array<uint32_t, 4> counter);

// A 64-bit key made from parts, such as (seed, step, layer).  FNV-1a over their bytes.
uint64_t random_key(std::string_view name, uint64_t a = 0, uint64_t b = 0);

// A stream of draws under one key.  Copyable; two streams with the same key give the same draws.
class RandomStream {
 public:
  explicit RandomStream(uint64_t key, uint64_t stream = 0);
  uint32_t bits();
  double uniform();  // [0, 1), 53 bits
  double normal();   // N(0, 1), Box–Muller

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 4> block_{};
  int used_ = 4;
};

}  // namespace vitrail
