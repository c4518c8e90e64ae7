// SPDX-License-Identifier: Apache-2.0
// The softmax of a row of attention scores, and its backward pass.
// Included once for each target (no #pragma once: Highway toggles the guard).
#include <cstdint>

#include "hwy/highway.h"
#include "vitrail/kernels/attention/attention_heads_internal.h"
#include "vitrail/kernels/isa/vector_memory-inl.h"
#include "vitrail/kernels/rowwise/softmax-inl.h"

#if defined(VITRAIL_KERNELS_HEAD_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VITRAIL_KERNELS_HEAD_SOFTMAX_INL_H_
#undef VITRAIL_KERNELS_HEAD_SOFTMAX_INL_H_
#else
#define VITRAIL_KERNELS_HEAD_SOFTMAX_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

// Scores → exponentials and the inverse of their sum, and weights if args ask for them.
template <class T>
HWY_INLINE void softmax_row_fp32(const Head<T>& head, int64_t query, float* scores, float* inverse) {
  if (head.bias) add_row(head.bias + query * head.bias_stride, scores, head.keys);
  const float sum = exp_row(scores, row_max(scores, head.keys), scores, head.keys);
  *inverse = sum == 0 ? 0.0f : 1.0f / sum;  // 0: all keys masked
  if (head.weights) scale_row(scores, *inverse, head.weights + query * head.keys, head.keys);
}

// Scores → weights P, and dP → dS = P ⊙ (dP − Σ P ⊙ dP), in place.
template <class T>
HWY_INLINE void softmax_row_backward(const HeadGrad<T>& head, int64_t query, float* weights, float* grad_scores) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t keys = head.keys;
  if (head.bias) add_row(head.bias + query * head.bias_stride, weights, keys);
  const float sum = exp_row(weights, row_max(weights, keys), weights, keys);
  scale_row(weights, sum == 0 ? 0.0f : 1.0f / sum, weights, keys);
  auto dots = hn::Zero(d);
  int64_t c = 0;
  for (; c + lanes <= keys; c += lanes)
    dots = hn::MulAdd(hn::LoadU(d, weights + c), hn::LoadU(d, grad_scores + c), dots);
  if (c < keys) dots = hn::MulAdd(load_first(d, weights + c, keys - c), load_first(d, grad_scores + c, keys - c), dots);
  const auto mean = hn::SumOfLanes(d, dots);
  for (c = 0; c + lanes <= keys; c += lanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, weights + c), hn::Sub(hn::LoadU(d, grad_scores + c), mean)), d, grad_scores + c);
  }
  if (const int64_t left = keys - c; left > 0) {
    const auto difference = hn::Sub(load_first(d, grad_scores + c, left), mean);
    store_first(d, hn::Mul(load_first(d, weights + c, left), difference), grad_scores + c, left);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();
#endif
