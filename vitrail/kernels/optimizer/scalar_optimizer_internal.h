// SPDX-License-Identifier: Apache-2.0
#pragma once
// The scalar references of weight_update.h: their specification, in any floating type, one element after another.
#include <cmath>
#include <cstdint>

#include "vitrail/kernels/optimizer/weight_update.h"

namespace vitrail::kernels::scalar {

// torch.lerp: computed from the nearer end.
template <class T>
T lerp(T a, T b, T weight) {
  return weight < T(0.5) ? a + weight * (b - a) : b - (b - a) * (T(1) - weight);
}

// Updates both moments and returns √v / sqrt_bias_correction2 + ε.
template <class T>
T adam_moments(T g, T* m, T* v, const AdamStep& s) {
  *m = lerp(*m, g, T(1 - s.beta1));
  *v = *v * T(s.beta2) + T(1 - s.beta2) * g * g;
  return std::sqrt(*v) / T(s.sqrt_bias_correction2) + T(s.eps);
}

template <class T>
void adamw(T* w, const T* g, T* m, T* v, int64_t n, const AdamStep& s) {
  const T keep = T(1 - s.rate * s.weight_decay), rate = T(s.rate / s.bias_correction1), scale = T(s.gradient_scale);
  for (int64_t i = 0; i < n; ++i) {
    const T denominator = adam_moments(scale * g[i], m + i, v + i, s);
    w[i] = w[i] * keep - rate * m[i] / denominator;
  }
}

template <class T>
T lamb_update(T w, T m, T v, const AdamStep& s) {
  return m / T(s.bias_correction1) / (std::sqrt(v) / T(s.sqrt_bias_correction2) + T(s.eps)) + T(s.weight_decay) * w;
}

template <class T>
LambSquares lamb_moments(const T* w, const T* g, T* m, T* v, int64_t n, const AdamStep& s) {
  LambSquares squares;
  for (int64_t i = 0; i < n; ++i) {
    adam_moments(T(s.gradient_scale) * g[i], m + i, v + i, s);
    const double weight = w[i], update = lamb_update(w[i], m[i], v[i], s);
    squares.weight += weight * weight;
    squares.update += update * update;
  }
  return squares;
}

template <class T>
void lamb_apply(T* w, const T* m, const T* v, int64_t n, double ratio, const AdamStep& s) {
  for (int64_t i = 0; i < n; ++i) w[i] -= T(s.rate) * (T(ratio) * lamb_update(w[i], m[i], v[i], s));
}

template <class T>
void sgd(T* w, const T* g, T* b, int64_t n, const SgdStep& s) {
  const T momentum = T(s.momentum);
  for (int64_t i = 0; i < n; ++i) {
    T d = T(s.gradient_scale) * g[i] + T(s.weight_decay) * w[i];
    if (b) {
      b[i] = momentum * b[i] + d;
      d = s.nesterov ? d + momentum * b[i] : b[i];
    }
    w[i] -= T(s.rate) * d;
  }
}

template <class T>
T sign(T x) {
  return x > T(0) ? T(1) : x < T(0) ? T(-1) : x;  // 0 and NaN stay
}

template <class T>
void lion(T* w, const T* g, T* m, int64_t n, const LionStep& s) {
  const T keep = T(1 - s.rate * s.weight_decay);
  for (int64_t i = 0; i < n; ++i) {
    const T scaled = T(s.gradient_scale) * g[i];
    w[i] = w[i] * keep - T(s.rate) * sign(lerp(m[i], scaled, T(1 - s.beta1)));
    m[i] = lerp(m[i], scaled, T(1 - s.beta2));
  }
}

template <class T>
void lerp(T* a, const T* b, int64_t n, double weight) {
  for (int64_t i = 0; i < n; ++i) a[i] = lerp(a[i], b[i], T(weight));
}

template <class T>
void scale(T* x, int64_t n, double factor) {
  for (int64_t i = 0; i < n; ++i) x[i] *= T(factor);
}

template <class T>
double sum_of_squares(const T* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

}  // namespace vitrail::kernels::scalar
