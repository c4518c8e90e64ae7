// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rows as whole numbers of 16 bits, each row with a step of its own: x ≈ step · numbers.  Private to kernels.
#include <cmath>
#include <cstdint>

namespace vitrail::kernels {

// How many steps long a row of n numbers, taken as one vector, is before they are rounded: 2¹⁵ − 1 afterwards at most,
// since each number becomes longer by half a step at most.  So each has room in 16 bits and, by Cauchy and Schwarz, any
// sum of two rows' products in 32.
inline float max_int16_scale_multiple(int64_t n) {
  return static_cast<float>(32767 - 0.5 * std::sqrt(static_cast<double>(n)));
}

}  // namespace vitrail::kernels
