// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/rowwise/layer_norm_backward.cpp"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/isa/vector_memory-inl.h"
#include "vitrail/kernels/rowwise/row_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// A vector of a row, or what is left of one (left < lanes), with zeros behind.
HWY_INLINE V load_some(D d, const float* p, int64_t left) {
  return left >= static_cast<int64_t>(hn::Lanes(d)) ? hn::LoadU(d, p) : load_first(d, p, left);
}
HWY_INLINE void store_some(D d, V v, float* p, int64_t left) {
  left >= static_cast<int64_t>(hn::Lanes(d)) ? hn::StoreU(v, d, p) : store_first(d, v, p, left);
}

// Passes over a row that is in the first-level cache: mean, variance, the two sums, the result.  γ's and β's gradients
// are added to.
void layer_norm_backward_row(const float* x, const float* gamma, float eps, const float* grad, int64_t cols,
                             float* grad_x, float* grad_gamma, float* grad_beta) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float n = static_cast<float>(cols);
  const float mean = sum_row(d, x, cols, [](V v) HWY_ATTR { return v; }) / n;
  const V means = hn::Set(d, mean), one = hn::Set(d, 1.0f);
  const float squares = sum_row(d, x, cols, [means](V v) HWY_ATTR {
    const V difference = hn::Sub(v, means);
    return hn::Mul(difference, difference);
  });
  const V inverse = hn::Set(d, 1.0f / std::sqrt(squares / n + eps));
  V sum_g = hn::Zero(d), sum_gx = hn::Zero(d);
  for (int64_t c = 0; c < cols; c += lanes) {
    const int64_t left = cols - c;
    const V at = load_some(d, grad + c, left);  // zeros beyond the row: what is multiplied with them adds nothing
    const V hat = hn::Mul(hn::Sub(load_some(d, x + c, left), means), inverse);
    const V g = hn::Mul(at, gamma ? load_some(d, gamma + c, left) : one);
    sum_g = hn::Add(sum_g, g);
    sum_gx = hn::MulAdd(g, hat, sum_gx);
    if (grad_gamma) store_some(d, hn::MulAdd(at, hat, load_some(d, grad_gamma + c, left)), grad_gamma + c, left);
    if (grad_beta) store_some(d, hn::Add(at, load_some(d, grad_beta + c, left)), grad_beta + c, left);
  }
  const V mean_g = hn::Mul(hn::SumOfLanes(d, sum_g), hn::Set(d, 1 / n));
  const V mean_gx = hn::Mul(hn::SumOfLanes(d, sum_gx), hn::Set(d, 1 / n));
  for (int64_t c = 0; c < cols; c += lanes) {
    const int64_t left = cols - c;
    const V hat = hn::Mul(hn::Sub(load_some(d, x + c, left), means), inverse);
    const V g = hn::Mul(load_some(d, grad + c, left), gamma ? load_some(d, gamma + c, left) : one);
    store_some(d, hn::Mul(hn::NegMulAdd(hat, mean_gx, hn::Sub(g, mean_g)), inverse), grad_x + c, left);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <vector>

#include "vitrail/base/parallel.h"
#include "vitrail/kernels/rowwise/layer_norm.h"
#include "vitrail/kernels/rowwise/scalar_rowwise_internal.h"

namespace vitrail::kernels {
namespace {

VITRAIL_EXPORT(layer_norm_backward_row, scalar::layer_norm_backward_row);

constexpr int64_t kRowsPerChunk = 64;  // part of the result: it fixes the order in which γ's and β's gradients add up

}  // namespace

void layer_norm_backward(const float* x, const float* gamma, float eps, const float* grad, int64_t rows, int64_t cols,
                         float* grad_x, float* grad_gamma, float* grad_beta) {
  auto* const one_row = &VITRAIL_DISPATCH(layer_norm_backward_row);
  const int64_t chunks = (rows + kRowsPerChunk - 1) / kRowsPerChunk;
  std::vector<float> partial(static_cast<size_t>(2 * chunks * cols), 0.0f);  // each chunk's γ, then β
  parallel_for(0, chunks, 1, [&](int64_t first, int64_t last) {
    for (int64_t r = first * kRowsPerChunk; r < std::min(rows, last * kRowsPerChunk); ++r) {
      float* const sums = partial.data() + r / kRowsPerChunk * 2 * cols;
      float* const to_gamma = grad_gamma ? sums : nullptr;
      float* const to_beta = grad_beta ? sums + cols : nullptr;
      one_row(x + r * cols, gamma, eps, grad + r * cols, cols, grad_x + r * cols, to_gamma, to_beta);
    }
  });
  for (float* const to : {grad_gamma, grad_beta}) {
    if (!to) continue;
    const float* from = partial.data() + (to == grad_beta ? cols : 0);
    std::fill(to, to + cols, 0.0f);
    for (int64_t chunk = 0; chunk < chunks; ++chunk, from += 2 * cols) {
      for (int64_t c = 0; c < cols; ++c) to[c] += from[c];
    }
  }
}

}  // namespace vitrail::kernels
#endif
