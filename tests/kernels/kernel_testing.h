// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by the kernel tests: a loop over the instruction sets, constants, buffers that detect a write outside them,
// comparisons that name the worst element.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "vitrail/kernels/isa/isa.h"
#include "vitrail/kernels/rowwise/activation.h"

namespace vitrail::kernels::testing {

// Runs body under each instruction set of this machine, whatever VITRAIL_CPU names, and restores the active one.
inline void for_each_isa(const std::function<void(Isa)>& body) {
  const Isa before = active_isa();
  for (Isa isa : available_isas()) {
    SCOPED_TRACE(name_of(isa));
    force_isa(isa);
    body(isa);
  }
  force_isa(before);
}

inline constexpr double kEps = std::numeric_limits<float>::epsilon();
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

inline constexpr Activation kActivations[] = {Activation::none,       Activation::gelu, Activation::gelu_tanh,
                                              Activation::quick_gelu, Activation::relu, Activation::silu,
                                              Activation::tanh};

struct AttentionSizes {
  int64_t batch, heads, queries, keys, head_dim;
};

// Lengths around every vector width (4, 8 and 16 lanes, and their unrolled multiples), and primes.
inline const std::vector<int64_t> kAwkwardLengths{0,  1,  2,  3,  4,  5,  7,  8,  9,   13,  15,  16,  17,  31,
                                                  32, 33, 37, 47, 63, 64, 65, 97, 101, 127, 129, 192, 197, 257};

// n floats that begin `offset` elements past an aligned address, between guards whose changes check() reports.
class Buffer {
 public:
  explicit Buffer(int64_t n, int64_t offset = 0)
      : n_(n), first_(kGuard + offset), all_(n + offset + 2 * kGuard, kMark) {}
  Buffer(const std::vector<float>& values, int64_t offset) : Buffer(static_cast<int64_t>(values.size()), offset) {
    std::copy(values.begin(), values.end(), data());
  }
  float* data() { return all_.data() + first_; }
  const float* data() const { return all_.data() + first_; }
  std::vector<float> values() const { return {data(), data() + n_}; }
  void check() const {
    for (int64_t i = 0; i < static_cast<int64_t>(all_.size()); ++i) {
      const bool inside = i >= first_ && i < first_ + n_;
      ASSERT_TRUE(inside || all_[i] == kMark) << "written outside, at " << i - first_;
    }
  }

 private:
  static constexpr int64_t kGuard = 32;
  static constexpr float kMark = 12345.0f;
  int64_t n_, first_;
  std::vector<float> all_;
};

inline std::vector<float> random_floats(int64_t n, uint32_t seed, float spread = 1.0f) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0.0f, spread);
  std::vector<float> values(n);
  for (float& v : values) v = normal(engine);
  return values;
}

inline std::vector<double> widened(const std::vector<float>& x) { return {x.begin(), x.end()}; }

// For LayerNorm and RMSNorm: values are of order 1 and each normalised one a handful of operations away from sums of
// `cols` terms whose error grows as √cols in practice and cols at worst; |γ·x̂| ≤ 12 in these tests.
inline double norm_tolerance(int64_t cols) { return 12 * kEps * (4 + 0.5 * static_cast<double>(cols) / 4); }

// |got[i] − want[i]| ≤ tolerance(i), with NaN equal to NaN and ∞ to ∞; a failure names the worst element.
template <class Want>
void expect_close(const std::vector<float>& got, const std::vector<Want>& want,
                  const std::function<double(int64_t)>& tolerance) {
  ASSERT_EQ(got.size(), want.size());
  int64_t worst = -1;
  double worst_ratio = 1;
  for (int64_t i = 0; i < static_cast<int64_t>(got.size()); ++i) {
    const double g = got[i], w = want[i];
    if ((std::isnan(g) && std::isnan(w)) || g == w) continue;
    const double ratio = std::abs(g - w) / tolerance(i);
    if (!(ratio <= worst_ratio)) worst = i, worst_ratio = std::isnan(ratio) ? INFINITY : ratio;
  }
  if (worst >= 0) {
    ADD_FAILURE() << "element " << worst << " of " << got.size() << ": got " << got[worst] << ", expected "
                  << want[worst] << ", tolerance " << tolerance(worst) << " exceeded " << worst_ratio << " times";
  }
}

}  // namespace vitrail::kernels::testing
