// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/rowwise/rms_norm.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/rowwise/rms_norm.cpp"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/isa/vector_memory-inl.h"
#include "vitrail/kernels/rowwise/row_reduction-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// 1 / √(mean(x²) + ε)
HWY_INLINE V inverse_rms(const float* x, int64_t cols, float eps) {
  const D d;
  const float squares = sum_row(d, x, cols, [](V v) HWY_ATTR { return hn::Mul(v, v); });
  return hn::Set(d, 1.0f / std::sqrt(squares / static_cast<float>(cols) + eps));
}

void rms_norm_row(const float* x, const float* gamma, float eps, float* y, int64_t cols) {
  const D d;
  const V inverse = inverse_rms(x, cols, eps), one = hn::Set(d, 1.0f);
  for_each_vector(d, cols, [=](int64_t c, auto memory) HWY_ATTR {
    const V scale = gamma ? memory.load(gamma + c) : one;
    memory.store(hn::Mul(hn::Mul(memory.load(x + c), inverse), scale), y + c);
  });
}

// The equations of rms_norm_backward(), rms_norm.h.  grad_gamma, unless null, is added to.
void rms_norm_backward_row(const float* x, const float* gamma, float eps, const float* grad, int64_t cols,
                           float* grad_x, float* grad_gamma) {
  const D d;
  const V inverse = inverse_rms(x, cols, eps), one = hn::Set(d, 1.0f);
  V sum_gx = hn::Zero(d);  // Σ g · x̂
  for_each_vector(d, cols, [&](int64_t c, auto memory) HWY_ATTR {
    const V gradient = memory.load(grad + c), hat = hn::Mul(memory.load(x + c), inverse);
    sum_gx = hn::MulAdd(hn::Mul(gradient, gamma ? memory.load(gamma + c) : one), hat, sum_gx);
    if (grad_gamma) memory.store(hn::MulAdd(gradient, hat, memory.load(grad_gamma + c)), grad_gamma + c);
  });
  const V mean_gx = hn::Mul(hn::SumOfLanes(d, sum_gx), hn::Set(d, 1 / static_cast<float>(cols)));
  for_each_vector(d, cols, [=](int64_t c, auto memory) HWY_ATTR {
    const V hat = hn::Mul(memory.load(x + c), inverse);
    const V g = hn::Mul(memory.load(grad + c), gamma ? memory.load(gamma + c) : one);
    memory.store(hn::Mul(hn::NegMulAdd(hat, mean_gx, g), inverse), grad_x + c);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <vector>

#include "vitrail/base/parallel.h"
#include "vitrail/kernels/rowwise/scalar_rowwise_internal.h"

namespace vitrail::kernels {
namespace {

VITRAIL_EXPORT(rms_norm_row, scalar::rms_norm_row);
VITRAIL_EXPORT(rms_norm_backward_row, scalar::rms_norm_backward_row);

constexpr int64_t kElementsPerTask = 8192;  // these take as long as starting the other threads
constexpr int64_t kRowsPerChunk = 64;       // fixes the order in which grad_gamma is summed, so the result too

}  // namespace

void rms_norm(const float* x, int64_t ldx, const float* gamma, float eps, float* y, int64_t ldy, int64_t rows,
              int64_t cols) {
  auto* const norm_row = &VITRAIL_DISPATCH(rms_norm_row);
  parallel_for(0, rows, 1 + kElementsPerTask / (cols + 1), [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) norm_row(x + r * ldx, gamma, eps, y + r * ldy, cols);
  });
}

void rms_norm_backward(const float* x, const float* gamma, float eps, const float* grad, int64_t rows, int64_t cols,
                       float* grad_x, float* grad_gamma) {
  auto* const one_row = &VITRAIL_DISPATCH(rms_norm_backward_row);
  const int64_t chunks = ceil_div(rows, kRowsPerChunk);
  std::vector<float> partial(grad_gamma ? static_cast<size_t>(chunks * cols) : 0, 0.0f);
  parallel_for(0, chunks, 1, [&](int64_t first, int64_t last) {
    for (int64_t r = first * kRowsPerChunk; r < std::min(rows, last * kRowsPerChunk); ++r) {
      const int64_t at = r * cols;
      float* const sums = grad_gamma ? partial.data() + r / kRowsPerChunk * cols : nullptr;
      one_row(x + at, gamma, eps, grad + at, cols, grad_x + at, sums);
    }
  });
  if (!grad_gamma) return;
  std::fill(grad_gamma, grad_gamma + cols, 0.0f);
  for (size_t i = 0; i < partial.size(); ++i) grad_gamma[static_cast<int64_t>(i) % cols] += partial[i];
}

}  // namespace vitrail::kernels
#endif
