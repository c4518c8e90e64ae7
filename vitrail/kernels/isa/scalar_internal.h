// SPDX-License-Identifier: Apache-2.0
#pragma once
// The plain references of the matrix products: each kernel's specification, one loop after another on one thread.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "vitrail/kernels/gemm/activation_quantization_internal.h"
#include "vitrail/kernels/gemm/int8_weight.h"

namespace vitrail::kernels::scalar {

// The largest |w|, |v| or |w + v| of a row's neighbours; NaN where something is not finite.
inline float heaviest_pair(const float* row, int64_t in) {
  float heaviest = 0, poison = 0;
  for (int64_t c = 0; c < in; c += 2) {
    const float w = row[c], v = c + 1 < in ? row[c + 1] : 0.0f;
    heaviest = std::max({heaviest, std::abs(w), std::abs(v), std::abs(w + v)});
    poison += 0 * w + 0 * v;
  }
  return heaviest + poison;
}

inline bool is_whole(const float* row, int64_t in, float factor) {
  return std::all_of(row, row + in, [factor](float value) {
    const float number = value * factor;
    return std::abs(number - std::nearbyint(number)) <= 1e-4f && std::abs(number) < kMaxInt8 + 0.5f;
  });
}

inline void round_row(const float* row, int64_t in, float factor, int8_t* numbers) {
  for (int64_t c = 0; c < in; ++c) numbers[c] = static_cast<int8_t>(std::nearbyint(row[c] * factor));
}

// See int8_weight.h; the three steps are the caller's.
template <class HeaviestPair, class IsWhole, class RoundRow>
float weight_numbers_by(const float* row, int64_t in, int8_t* numbers, const HeaviestPair& heaviest_of,
                        const IsWhole& whole, const RoundRow& round) {
  const float heaviest = heaviest_of(row, in);
  if (!(heaviest > 0)) {  // zeros, or not finite
    std::fill_n(numbers, in, int8_t{0});
    return heaviest;
  }
  constexpr float kFewest = 32;  // what was chosen with room to spare is found too
  float most = 2 * kMaxInt8;
  while (most > kFewest && !whole(row, in, most / heaviest)) --most;
  if (most <= kFewest) most = kMaxInt8;
  round(row, in, most / heaviest, numbers);
  return heaviest / most;
}
inline float quantize_weight_row(const float* row, int64_t in, int8_t* numbers) {
  return weight_numbers_by(row, in, numbers, heaviest_pair, is_whole, round_row);
}

// x [n] → bytes: see activation_quantization_internal.h.
inline QuantizationParams quantize(const float* x, int64_t n, uint8_t* bytes) {
  float least = 0, most = 0, poison = 0;
  for (int64_t i = 0; i < n; ++i) {
    least = std::min(least, x[i]);
    most = std::max(most, x[i]);
    poison += 0 * x[i];
  }
  const RowQuantizer steps = row_quantizer(least, most + poison);
  for (int64_t i = 0; i < n; ++i) {
    const float number = std::nearbyint(x[i] * steps.factor) + static_cast<float>(steps.grid.zero);
    bytes[i] = static_cast<uint8_t>(std::isnan(number) ? 0 : std::clamp(number, 0.0f, 255.0f));
  }
  return steps.grid;
}

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

}  // namespace vitrail::kernels::scalar
