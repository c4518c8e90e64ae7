// SPDX-License-Identifier: Apache-2.0
#pragma once
// Asymmetric per-row quantisation of activations to uint8: x ≈ scale · (q − zero_point), q in [0, 255].  GELU's outputs
// are mostly positive: a symmetric range would waste almost half of the 255 levels on them.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace vitrail::kernels {

struct QuantizationParams {
  float scale;
  int32_t zero_point;
};

// q = round(x · inverse_scale) + zero_point
struct RowQuantizer {
  QuantizationParams params;
  float inverse_scale;
};

// Rows whose scale would be below the smallest normal number count as zeros: its inverse may be infinite.
constexpr float kMinScale = std::numeric_limits<float>::min();

// For a row with min ≤ 0 ≤ max: both ends and 0 are representable.  NaN makes the scale NaN; a row of zeros has scale
// 0.
inline RowQuantizer row_quantizer(float min, float max) {
  const float range = max - min;
  if (range < 255 * kMinScale) return {{0, 0}, 0};
  if (std::isnan(range)) return {{range, 0}, 0};
  const float inverse_scale = 255 / range;
  return {{range / 255, static_cast<int32_t>(std::nearbyint(-min * inverse_scale))}, inverse_scale};
}

// The low term of a two-term row quantises the error of the high term, which is at most half of its scale:
// x ≈ high.scale · (q_high − high.zero_point) + params.scale · (q_low − params.zero_point).
struct LowTermQuantizer {
  static constexpr float kLevels = 254;  // the ratio of the two scales
  QuantizationParams high;
  float inverse_high_scale;
  QuantizationParams params;
};

inline LowTermQuantizer low_term_quantizer(QuantizationParams high) {
  return {high, high.scale > 0 ? 1 / high.scale : 0, {high.scale / LowTermQuantizer::kLevels, 127}};
}

// NaN gives 255.
inline uint8_t low_term_value(float x, uint8_t high_value, const LowTermQuantizer& quantizer) {
  const float error = x * quantizer.inverse_high_scale - static_cast<float>(high_value - quantizer.high.zero_point);
  return static_cast<uint8_t>(
      std::max(0.0f, std::min(255.0f, std::nearbyint(error * LowTermQuantizer::kLevels) + 127)));
}

}  // namespace vitrail::kernels
