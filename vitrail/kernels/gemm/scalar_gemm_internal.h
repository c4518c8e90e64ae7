// SPDX-License-Identifier: Apache-2.0
#pragma once
// The scalar references of the GEMMs and of their quantisation: each kernel's specification, one loop after another.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "vitrail/kernels/gemm/activation_quantization_internal.h"
#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/kernels/gemm/weight_quantization_internal.h"
#include "vitrail/kernels/rowwise/scalar_rowwise_internal.h"

namespace vitrail::kernels::scalar {

// c [m, n] = op(a) op(b) (+ c with accumulate), row-major; op transposes: see linear.h.
template <class T>
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b,
          int64_t ldb, bool accumulate, T* c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i) {
    T* row = c + i * ldc;
    if (!accumulate) std::fill(row, row + n, T(0));
    for (int64_t j = 0; transpose_b && j < n; ++j) {
      T sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += (transpose_a ? a[p * lda + i] : a[i * lda + p]) * b[j * ldb + p];
      row[j] += sum;
    }
    for (int64_t p = 0; !transpose_b && p < k; ++p) {
      const T factor = transpose_a ? a[p * lda + i] : a[i * lda + p];
      for (int64_t j = 0; j < n; ++j) row[j] += factor * b[p * ldb + j];
    }
  }
}

// y(row, column) of x Wᵀ + b there.
inline float epilogue(const Epilogue& epilogue, float biased, int64_t row, int64_t column) {
  const Residual& residual = epilogue.residual;
  float y = activate(epilogue.activation, biased);
  if (residual.scale) y *= residual.scale[column];
  if (residual.data) y += residual.data[row * residual.ld + column];
  return y;
}

// The largest |w| of a row or |w₀ + w₁| of a pair of adjacent values; NaN if a value is not finite.
inline float max_value_or_pair(const float* row, int64_t in) {
  float max = 0, poison = 0;
  for (int64_t c = 0; c < in; c += 2) {
    const float w0 = row[c], w1 = c + 1 < in ? row[c + 1] : 0.0f;
    max = std::max({max, std::abs(w0), std::abs(w1), std::abs(w0 + w1)});
    poison += 0 * w0 + 0 * w1;
  }
  return max + poison;
}

// Whether row · inverse_scale consists of int8 values, up to the rounding of fp32.
inline bool is_integral(const float* row, int64_t in, float inverse_scale) {
  return std::all_of(row, row + in, [inverse_scale](float w) {
    const float value = w * inverse_scale;
    return std::abs(value - std::nearbyint(value)) <= 1e-4f && std::abs(value) < kMaxInt8 + 0.5f;
  });
}

inline void round_to_int8(const float* row, int64_t in, float inverse_scale, int8_t* values) {
  for (int64_t c = 0; c < in; ++c) values[c] = static_cast<int8_t>(std::nearbyint(row[c] * inverse_scale));
}

// quantize_weight_row by three functions like the ones above.  If the row is an integer multiple of some scale, the
// largest value or pair is an integer of at most 2 · 127 in that scale: all of them are tried.
template <class MaxValueOrPair, class IsIntegral, class RoundToInt8>
float quantize_weight_row_by(const float* row, int64_t in, int8_t* values, const MaxValueOrPair& max_value_or_pair,
                             const IsIntegral& is_integral, const RoundToInt8& round_to_int8) {
  const float max = max_value_or_pair(row, in);
  if (!(max >= 2 * kMaxInt8 * kMinScale)) {  // zeros, or a value that is not finite
    std::fill_n(values, in, int8_t{0});
    return std::isnan(max) ? max : 0;
  }
  constexpr float kMinLevel = 32;  // a row with a smaller largest integer is found by a multiple of it
  float level = 2 * kMaxInt8;      // the largest value or pair in units of the scale
  while (level > kMinLevel && !is_integral(row, in, level / max)) --level;
  if (level <= kMinLevel) level = kMaxInt8;
  round_to_int8(row, in, level / max, values);
  return max / level;
}
inline float quantize_weight_row(const float* row, int64_t in, int8_t* values) {
  return quantize_weight_row_by(row, in, values, max_value_or_pair, is_integral, round_to_int8);
}

// x [n] → values [n]: see activation_quantization_internal.h.
inline QuantizationParams quantize_uint8_row(const float* x, int64_t n, uint8_t* values) {
  float min = 0, max = 0, poison = 0;
  for (int64_t i = 0; i < n; ++i) {
    min = std::min(min, x[i]);
    max = std::max(max, x[i]);
    poison += 0 * x[i];
  }
  const RowQuantizer quantizer = row_quantizer(min, max + poison);
  for (int64_t i = 0; i < n; ++i) {
    const float value =
        std::nearbyint(x[i] * quantizer.inverse_scale) + static_cast<float>(quantizer.params.zero_point);
    values[i] = static_cast<uint8_t>(std::isnan(value) ? 0 : std::clamp(value, 0.0f, 255.0f));
  }
  return quantizer.params;
}

}  // namespace vitrail::kernels::scalar
