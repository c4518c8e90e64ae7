#pragma once
// A row of activations as bytes: x ≈ scale · (byte − zero).  Private to kernels.
#include <cmath>
#include <cstdint>

namespace vitrail::kernels {

struct ByteGrid {
  float scale;
  int32_t zero;  // the byte that stands for 0
};

struct ByteSteps {
  ByteGrid grid;
  float factor;  // byte = x · factor, to the nearest, + zero
};

// 255 equal steps between the ends of a row, 0 among its values: least ≤ 0 ≤ most.  NaN makes the scale NaN.
inline ByteSteps byte_steps(float least, float most) {
  const float range = most - least;
  if (!(range > 0)) return {{range, 0}, 0};
  const float factor = 255 / range;
  return {{range / 255, static_cast<int32_t>(std::nearbyint(-least * factor))}, factor};
}

}  // namespace vitrail::kernels
