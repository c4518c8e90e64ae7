// SPDX-License-Identifier: Apache-2.0
#pragma once
// The plain references: each kernel's specification, in any floating type, one loop after another on one thread.
// f64 runs them, tests compare every instruction set with them, and VITRAIL_CPU=scalar runs nothing else.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "vitrail/kernels/gemm/activation_quantization_internal.h"
#include "vitrail/kernels/gemm/int8_weight.h"
#include "vitrail/kernels/rowwise/activation.h"

namespace vitrail::kernels::scalar {

template <class T>
T activate(Activation activation, T x) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::gelu:
      return T(0.5) * x * (T(1) + std::erf(x * T(0.70710678118654752440)));
    case Activation::gelu_tanh: {
      const T inner = T(0.79788456080286535588) * (x + T(0.044715) * x * x * x);
      return T(0.5) * x * (T(1) + std::tanh(inner));
    }
    case Activation::quick_gelu:
      return x / (T(1) + std::exp(T(-1.702) * x));
    case Activation::relu:
      return x < T(0) ? T(0) : x;  // NaN stays NaN
    case Activation::silu:
      return x / (T(1) + std::exp(-x));
    case Activation::tanh:
      return std::tanh(x);
  }
  return x;
}

// The derivative of activate at x.
template <class T>
T activation_slope(Activation activation, T x) {
  switch (activation) {
    case Activation::none:
      return T(1);
    case Activation::gelu:
      return T(0.5) * (T(1) + std::erf(x * T(0.70710678118654752440))) +
             x * T(0.39894228040143267794) * std::exp(T(-0.5) * x * x);
    case Activation::gelu_tanh: {
      const T t = std::tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x));
      const T inner_slope = T(0.79788456080286535588) * (T(1) + T(3 * 0.044715) * x * x);
      return T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * inner_slope;
    }
    case Activation::quick_gelu: {
      const T s = T(1) / (T(1) + std::exp(T(-1.702) * x));
      return s + T(1.702) * x * s * (T(1) - s);
    }
    case Activation::relu:
      return x > T(0) ? T(1) : T(0);
    case Activation::silu: {
      const T s = T(1) / (T(1) + std::exp(-x));
      return s + x * s * (T(1) - s);
    }
    case Activation::tanh: {
      const T t = std::tanh(x);
      return T(1) - t * t;
    }
  }
  return T(1);
}

template <class T>
void silu_gate(const T* x, T* y, int64_t cols) {
  for (int64_t c = 0; c < cols; ++c) y[c] = activate(Activation::silu, x[c]) * x[cols + c];
}

template <class T>
void layer_norm(const T* x, int64_t ldx, const T* gamma, const T* beta, T eps, T* y, int64_t ldy, int64_t rows,
                int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, x += ldx, y += ldy) {
    T sum = 0, squares = 0;
    for (int64_t c = 0; c < cols; ++c) sum += x[c];
    const T mean = sum / T(cols);
    for (int64_t c = 0; c < cols; ++c) squares += (x[c] - mean) * (x[c] - mean);
    const T inverse = T(1) / std::sqrt(squares / T(cols) + eps);
    for (int64_t c = 0; c < cols; ++c) {
      y[c] = (x[c] - mean) * inverse * (gamma ? gamma[c] : T(1)) + (beta ? beta[c] : T(0));
    }
  }
}

// grad_gamma and grad_beta, where not null, are added to.
template <class T>
void layer_norm_backward(const T* x, const T* gamma, T eps, const T* grad, int64_t rows, int64_t cols, T* grad_x,
                         T* grad_gamma, T* grad_beta) {
  for (int64_t r = 0; r < rows; ++r, x += cols, grad += cols, grad_x += cols) {
    T mean = 0, variance = 0, sum_g = 0, sum_gx = 0;
    for (int64_t c = 0; c < cols; ++c) mean += x[c] / T(cols);
    for (int64_t c = 0; c < cols; ++c) variance += (x[c] - mean) * (x[c] - mean) / T(cols);
    const T inverse = T(1) / std::sqrt(variance + eps);
    for (int64_t c = 0; c < cols; ++c) {
      const T hat = (x[c] - mean) * inverse, g = grad[c] * (gamma ? gamma[c] : T(1));
      sum_g += g;
      sum_gx += g * hat;
      if (grad_gamma) grad_gamma[c] += grad[c] * hat;
      if (grad_beta) grad_beta[c] += grad[c];
    }
    for (int64_t c = 0; c < cols; ++c) {
      const T hat = (x[c] - mean) * inverse, g = grad[c] * (gamma ? gamma[c] : T(1));
      grad_x[c] = (g - sum_g / T(cols) - hat * sum_gx / T(cols)) * inverse;
    }
  }
}

// out[c] = Σ_r x[r, c] (· y[r, c] when y is not null).
template <class T>
void sum_rows(const T* x, const T* y, int64_t rows, int64_t cols, T* out) {
  std::fill(out, out + cols, T(0));
  for (int64_t i = 0; i < rows * cols; ++i) out[i % cols] += y ? x[i] * y[i] : x[i];
}

// out = x + scale · y; scale may be null (1).
template <class T>
void add_scaled(const T* x, const T* y, const T* scale, T* out, int64_t cols) {
  for (int64_t c = 0; c < cols; ++c) out[c] = x[c] + (scale ? scale[c] * y[c] : y[c]);
}

template <class T>
void softmax(const T* x, T* y, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    T most = -std::numeric_limits<T>::infinity();
    for (int64_t c = 0; c < cols; ++c) most = std::max(most, x[c]);
    if (std::all_of(x, x + cols, [](T v) { return v == -std::numeric_limits<T>::infinity(); })) {
      std::fill(y, y + cols, T(0));
      continue;
    }
    T sum = 0;
    for (int64_t c = 0; c < cols; ++c) sum += y[c] = std::exp(x[c] - most);
    for (int64_t c = 0; c < cols; ++c) y[c] /= sum;
  }
}

// One query: weights = softmax(scale · q kᵀ + bias), out = weights · v.  bias [keys] may be null.
template <class T>
void attention_row(const T* q, const T* k, int64_t k_stride, const T* v, int64_t v_stride, int64_t keys,
                   int64_t head_dim, T scale, const T* bias, T* weights, T* out) {
  for (int64_t s = 0; s < keys; ++s) {
    T dot = 0;
    for (int64_t e = 0; e < head_dim; ++e) dot += q[e] * k[s * k_stride + e];
    weights[s] = dot * scale + (bias ? bias[s] : T(0));
  }
  softmax(weights, weights, 1, keys);
  std::fill(out, out + head_dim, T(0));
  for (int64_t s = 0; s < keys; ++s) {
    for (int64_t e = 0; e < head_dim; ++e) out[e] += weights[s] * v[s * v_stride + e];
  }
}

// The gradients of attention_row: `weights` are its weights, `slopes` [keys] is memory to work in.  grad_q is written,
// grad_k and grad_v are added to.
template <class T>
void attention_row_backward(const T* q, const T* k, int64_t k_stride, const T* v, int64_t v_stride, int64_t keys,
                            int64_t head_dim, T scale, const T* weights, const T* grad, T* slopes, T* grad_q, T* grad_k,
                            int64_t grad_k_stride, T* grad_v, int64_t grad_v_stride) {
  T mean = 0;  // Σ weights · their gradients
  for (int64_t s = 0; s < keys; ++s) {
    slopes[s] = 0;
    for (int64_t e = 0; e < head_dim; ++e) slopes[s] += grad[e] * v[s * v_stride + e];
    mean += weights[s] * slopes[s];
  }
  std::fill(grad_q, grad_q + head_dim, T(0));
  for (int64_t s = 0; s < keys; ++s) {
    slopes[s] = weights[s] * (slopes[s] - mean);
    for (int64_t e = 0; e < head_dim; ++e) {
      grad_q[e] += scale * slopes[s] * k[s * k_stride + e];
      grad_k[s * grad_k_stride + e] += scale * slopes[s] * q[e];
      grad_v[s * grad_v_stride + e] += weights[s] * grad[e];
    }
  }
}

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
