// SPDX-License-Identifier: Apache-2.0
#pragma once
// A row of activations as bytes: x ≈ scale · (byte − zero).  Private to kernels.
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace vitrail::kernels {

struct QuantizationParams {
  float scale;
  int32_t zero;  // the byte that stands for 0
};

struct RowQuantizer {
  QuantizationParams grid;
  float factor;  // byte = x · factor, to the nearest, + zero
};

// 255 equal steps between the ends of a row, 0 among its values: least ≤ 0 ≤ most.  NaN makes the scale NaN.
inline RowQuantizer row_quantizer(float least, float most) {
  const float range = most - least;
  if (!(range > 0)) return {{range, 0}, 0};
  const float factor = 255 / range;
  return {{range / 255, static_cast<int32_t>(std::nearbyint(-least * factor))}, factor};
}

// What the bytes of a row leave of it: at most half a step, as bytes of 1/254 of one, 127 for none.
struct LowTermQuantizer {
  static constexpr float kOfOne = 254;
  QuantizationParams of;    // the row's
  float factor;             // x · factor: x in the row's steps
  QuantizationParams grid;  // the rest's
};

inline LowTermQuantizer low_term_quantizer(QuantizationParams of) {
  return {of, of.scale > 0 ? 1 / of.scale : 0, {of.scale / LowTermQuantizer::kOfOne, 127}};
}

inline uint8_t low_term_value(float x, uint8_t byte, const LowTermQuantizer& steps) {
  const float rest = x * steps.factor - static_cast<float>(byte - steps.of.zero);
  return static_cast<uint8_t>(
      std::max(0.0f, std::min(255.0f, std::nearbyint(rest * LowTermQuantizer::kOfOne) + 127)));  // NaN: 255
}

}  // namespace vitrail::kernels
