// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "vitrail/weights/float8_internal.h"

namespace vitrail::weights {

float widen(uint8_t bits, Float8 format) {
  const int mantissa_bits = format == Float8::e4m3fn ? 3 : 2, bias = format == Float8::e4m3fn ? 7 : 15;
  const int exponent = (bits & 0x7f) >> mantissa_bits, mantissa = bits & ((1 << mantissa_bits) - 1);
  const float sign = (bits & 0x80) != 0 ? -1.0F : 1.0F;
  if (format == Float8::e4m3fn && (bits & 0x7f) == 0x7f) return std::numeric_limits<float>::quiet_NaN();
  if (format == Float8::e5m2 && exponent == 31) {
    return mantissa == 0 ? sign * std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  }
  const int significand = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);  // subnormals have no leading one
  return sign * std::ldexp(static_cast<float>(significand), std::max(exponent, 1) - bias - mantissa_bits);
}

Tensor widen(const Tensor& bytes, Float8 format) {
  std::array<float, 256> table{};
  for (size_t i = 0; i < table.size(); ++i) table[i] = widen(static_cast<uint8_t>(i), format);
  Tensor result = Tensor::empty(bytes.shape());
  const auto* const from = bytes.data<uint8_t>();
  float* const to = result.data<float>();
  for (int64_t i = 0; i < bytes.numel(); ++i) to[i] = table[from[i]];
  return result;
}

}  // namespace vitrail::weights
