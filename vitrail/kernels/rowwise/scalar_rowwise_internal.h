// SPDX-License-Identifier: Apache-2.0
#pragma once
// The scalar references of the kernels in this folder: their specification, in any floating type, one element after
// another on the calling thread.  Tests compare every instruction set with them, VITRAIL_CPU=scalar runs them, and f64
// tensors run them on every processor.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "vitrail/base/dtype.h"
#include "vitrail/kernels/rowwise/activation.h"
#include "vitrail/kernels/rowwise/exponentials.h"

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
T activation_derivative(Activation activation, T x) {
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

// y[i] = activation(x[i]); y may be x.
template <class T>
void activate_span(Activation activation, const T* x, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = activate(activation, x[i]);
}

// out[i] = grad[i] · activation'(x[i]); out may be grad.
template <class T>
void activation_backward_span(Activation activation, const T* x, const T* grad, T* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = grad[i] * activation_derivative(activation, x[i]);
}

// x += bias, and y = activation(x) unless y is null.
template <class T>
void add_bias_row(Activation activation, const T* bias, T* x, T* y, int64_t cols) {
  for (int64_t c = 0; c < cols; ++c) {
    x[c] += bias[c];
    if (y) y[c] = activate(activation, x[c]);
  }
}

// SwiGLU's gate: y[c] = silu(x[c]) · x[cols + c].
template <class T>
void silu_gate(const T* x, T* y, int64_t cols) {
  for (int64_t c = 0; c < cols; ++c) y[c] = activate(Activation::silu, x[c]) * x[cols + c];
}

// Rotary position embedding of `heads` heads of one token (rotary.h): pairs (i, i + d/2).  y may be x.  table: d/2
// cosines and then d/2 sines, `table_step` elements after those of the head before; the sines are multiplied by `sign`.
template <class T>
void rotate_halves(const T* x, T* y, int64_t heads, int64_t dim, const T* table, int64_t table_step, T sign) {
  const int64_t half = dim / 2;
  for (int64_t h = 0; h < heads; ++h, x += dim, y += dim, table += table_step) {
    for (int64_t i = 0; i < half; ++i) {
      const T a = x[i], b = x[half + i], cos = table[i], sin = sign * table[half + i];
      y[i] = a * cos - b * sin;
      y[half + i] = b * cos + a * sin;
    }
  }
}

// The same for pairs (2i, 2i + 1).
template <class T>
void rotate_interleaved(const T* x, T* y, int64_t heads, int64_t dim, const T* table, int64_t table_step, T sign) {
  const int64_t half = dim / 2;
  for (int64_t h = 0; h < heads; ++h, x += dim, y += dim, table += table_step) {
    for (int64_t i = 0; i < half; ++i) {
      const T a = x[2 * i], b = x[2 * i + 1], cos = table[i], sin = sign * table[half + i];
      y[2 * i] = a * cos - b * sin;
      y[2 * i + 1] = b * cos + a * sin;
    }
  }
}

// y = γ · (x − mean) / √(variance + ε) + β; gamma and beta may be null (1 and 0).
template <class T>
void layer_norm_row(const T* x, const T* gamma, const T* beta, T eps, T* y, int64_t cols) {
  T sum = 0, squares = 0;
  for (int64_t c = 0; c < cols; ++c) sum += x[c];
  const T mean = sum / T(cols);
  for (int64_t c = 0; c < cols; ++c) squares += (x[c] - mean) * (x[c] - mean);
  const T inverse = T(1) / std::sqrt(squares / T(cols) + eps);
  for (int64_t c = 0; c < cols; ++c) {
    y[c] = (x[c] - mean) * inverse * (gamma ? gamma[c] : T(1)) + (beta ? beta[c] : T(0));
  }
}

template <class T>
void layer_norm(const T* x, int64_t ldx, const T* gamma, const T* beta, T eps, T* y, int64_t ldy, int64_t rows,
                int64_t cols) {
  for (int64_t r = 0; r < rows; ++r) layer_norm_row(x + r * ldx, gamma, beta, eps, y + r * ldy, cols);
}

// The gradients of layer_norm_row.  grad_x is written; grad_gamma and grad_beta, unless null, are added to.
template <class T>
void layer_norm_backward_row(const T* x, const T* gamma, T eps, const T* grad, int64_t cols, T* grad_x, T* grad_gamma,
                             T* grad_beta) {
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

// Contiguous rows [rows, cols].
template <class T>
void layer_norm_backward(const T* x, const T* gamma, T eps, const T* grad, int64_t rows, int64_t cols, T* grad_x,
                         T* grad_gamma, T* grad_beta) {
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t at = r * cols;
    layer_norm_backward_row(x + at, gamma, eps, grad + at, cols, grad_x + at, grad_gamma, grad_beta);
  }
}

// y = γ · x / √(mean(x²) + ε); gamma may be null (1).
template <class T>
void rms_norm_row(const T* x, const T* gamma, T eps, T* y, int64_t cols) {
  T squares = 0;
  for (int64_t c = 0; c < cols; ++c) squares += x[c] * x[c];
  const T inverse = T(1) / std::sqrt(squares / T(cols) + eps);
  for (int64_t c = 0; c < cols; ++c) y[c] = x[c] * inverse * (gamma ? gamma[c] : T(1));
}

// The gradients of rms_norm_row.  grad_x is written; grad_gamma, unless null, is added to.
template <class T>
void rms_norm_backward_row(const T* x, const T* gamma, T eps, const T* grad, int64_t cols, T* grad_x, T* grad_gamma) {
  T squares = 0, sum_gx = 0;
  for (int64_t c = 0; c < cols; ++c) squares += x[c] * x[c];
  const T inverse = T(1) / std::sqrt(squares / T(cols) + eps);
  for (int64_t c = 0; c < cols; ++c) {
    sum_gx += grad[c] * (gamma ? gamma[c] : T(1)) * x[c] * inverse;
    if (grad_gamma) grad_gamma[c] += grad[c] * x[c] * inverse;
  }
  for (int64_t c = 0; c < cols; ++c) {
    const T g = grad[c] * (gamma ? gamma[c] : T(1));
    grad_x[c] = (g - x[c] * inverse * sum_gx / T(cols)) * inverse;
  }
}

template <class T>
void add_span(const T* a, const T* b, T* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}

template <class T>
void multiply_span(const T* a, const T* b, T* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = a[i] * b[i];
}

// out += a · b
template <class T>
void multiply_add_span(const T* a, const T* b, T* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] += a[i] * b[i];
}

// out = x + scale · y; scale may be null (1).
template <class T>
void add_scaled(const T* x, const T* y, const T* scale, T* out, int64_t cols) {
  for (int64_t c = 0; c < cols; ++c) out[c] = x[c] + (scale ? scale[c] * y[c] : y[c]);
}

// out[c] = Σ_r x[r, c], or Σ_r x[r, c] · y[r, c] when y is not null.
template <class T>
void sum_rows(const T* x, const T* y, int64_t rows, int64_t cols, T* out) {
  std::fill(out, out + cols, T(0));
  for (int64_t i = 0; i < rows * cols; ++i) out[i % cols] += y ? x[i] * y[i] : x[i];
}

// out[c] = factor · Σ_r x[r, c], plus out[c] when `accumulate`.
template <class T>
void scaled_row_sum(const T* x, int64_t ldx, int64_t rows, int64_t cols, T factor, bool accumulate, T* out) {
  for (int64_t c = 0; c < cols; ++c) {
    T sum = 0;
    for (int64_t r = 0; r < rows; ++r) sum += x[r * ldx + c];
    out[c] = sum * factor + (accumulate ? out[c] : T(0));
  }
}

// e = exp(x − max), with 0 instead of max in a row of −∞ alone, where −∞ − (−∞) would be NaN.
template <class T>
RowExponentials<T> exponentials_row(const T* x, T* e, int64_t cols) {
  constexpr T kLowest = -std::numeric_limits<T>::infinity();
  T max = kLowest, sum = 0;
  for (int64_t c = 0; c < cols; ++c) max = std::max(max, x[c]);
  const T shift = max == kLowest ? T(0) : max;
  for (int64_t c = 0; c < cols; ++c) sum += e[c] = std::exp(x[c] - shift);
  return {max, sum};
}

// A row of −∞ alone gives zeros; NaN among the elements gives NaN in all of them.
template <class T>
void softmax_row(const T* x, T* y, int64_t cols) {
  constexpr T kLowest = -std::numeric_limits<T>::infinity();
  T max = kLowest;
  for (int64_t c = 0; c < cols; ++c) max = std::max(max, x[c]);
  if (std::all_of(x, x + cols, [](T v) { return v == kLowest; })) {
    std::fill_n(y, cols, T(0));
    return;
  }
  T sum = 0;
  for (int64_t c = 0; c < cols; ++c) sum += y[c] = std::exp(x[c] - max);
  for (int64_t c = 0; c < cols; ++c) y[c] /= sum;
}

// Contiguous rows [rows, cols].
template <class T>
void softmax(const T* x, T* y, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r) softmax_row(x + r * cols, y + r * cols, cols);
}

inline void round_to_bf16_span(const float* x, BFloat16* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = BFloat16(x[i]);
}

inline void widen_bf16_span(const BFloat16* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(x[i]);
}

}  // namespace vitrail::kernels::scalar
