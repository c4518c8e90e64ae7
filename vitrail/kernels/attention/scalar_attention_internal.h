// SPDX-License-Identifier: Apache-2.0
#pragma once
// The scalar reference of attention and its gradients: the specification of the vector kernels, in any floating type.
#include <algorithm>
#include <cstdint>

#include "vitrail/kernels/rowwise/scalar_rowwise_internal.h"

namespace vitrail::kernels::scalar {

// One query: weights = softmax(scale · q kᵀ + bias).  bias [keys] may be null.
template <class T>
void attention_weights(const T* q, const T* k, int64_t k_stride, int64_t keys, int64_t head_dim, T scale, const T* bias,
                       T* weights) {
  for (int64_t s = 0; s < keys; ++s) {
    T dot = 0;
    for (int64_t e = 0; e < head_dim; ++e) dot += q[e] * k[s * k_stride + e];
    weights[s] = dot * scale + (bias ? bias[s] : T(0));
  }
  softmax_row(weights, weights, keys);
}

// The bias [height · width] of the query at `token`: see RelativePositions.
template <class T>
void relative_position_row(const T* q, int64_t head_dim, int64_t token, int64_t height, int64_t width, const T* rows,
                           const T* columns, T* bias) {
  const int64_t y = token / width, x = token % width;
  for (int64_t v = 0; v < height; ++v) {
    for (int64_t u = 0; u < width; ++u) {
      const T* const row = rows + (y - v + height - 1) * head_dim;
      const T* const column = columns + (x - u + width - 1) * head_dim;
      T down = 0, across = 0;
      for (int64_t e = 0; e < head_dim; ++e) {
        down += q[e] * row[e];
        across += q[e] * column[e];
      }
      bias[v * width + u] = down + across;
    }
  }
}

// One query: weights as above, out = weights · v.
template <class T>
void attention_row(const T* q, const T* k, int64_t k_stride, const T* v, int64_t v_stride, int64_t keys,
                   int64_t head_dim, T scale, const T* bias, T* weights, T* out) {
  attention_weights(q, k, k_stride, keys, head_dim, scale, bias, weights);
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

}  // namespace vitrail::kernels::scalar
