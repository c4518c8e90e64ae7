// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/rowwise/layer_norm_backward.cpp"
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

// The equations of layer_norm_backward(), layer_norm.h.  grad_gamma and grad_beta, unless null, are added to.
void layer_norm_backward_row(const float* x, const float* gamma, float eps, const float* grad, int64_t cols,
                             float* grad_x, float* grad_gamma, float* grad_beta) {
  const D d;
  const RowStatistics statistics = row_statistics(x, cols, eps);
  const V mean = hn::Set(d, statistics.mean), rstd = hn::Set(d, statistics.rstd), one = hn::Set(d, 1.0f);
  V sum_g = hn::Zero(d), sum_gx = hn::Zero(d);  // Σ g and Σ g · x̂
  for_each_vector(d, cols, [&](int64_t c, auto memory) HWY_ATTR {
    const V gradient = memory.load(grad + c);  // zeros beyond the row, so that x̂ there adds nothing
    const V hat = hn::Mul(hn::Sub(memory.load(x + c), mean), rstd);
    const V g = hn::Mul(gradient, gamma ? memory.load(gamma + c) : one);
    sum_g = hn::Add(sum_g, g);
    sum_gx = hn::MulAdd(g, hat, sum_gx);
    if (grad_gamma) memory.store(hn::MulAdd(gradient, hat, memory.load(grad_gamma + c)), grad_gamma + c);
    if (grad_beta) memory.store(hn::Add(gradient, memory.load(grad_beta + c)), grad_beta + c);
  });
  const V one_over_n = hn::Set(d, 1 / static_cast<float>(cols));
  const V mean_g = hn::Mul(hn::SumOfLanes(d, sum_g), one_over_n);
  const V mean_gx = hn::Mul(hn::SumOfLanes(d, sum_gx), one_over_n);
  for_each_vector(d, cols, [=](int64_t c, auto memory) HWY_ATTR {
    const V hat = hn::Mul(hn::Sub(memory.load(x + c), mean), rstd);
    const V g = hn::Mul(memory.load(grad + c), gamma ? memory.load(gamma + c) : one);
    memory.store(hn::Mul(hn::NegMulAdd(hat, mean_gx, hn::Sub(g, mean_g)), rstd), grad_x + c);
  });
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

constexpr int64_t kRowsPerChunk =
    64;  // fixes the order in which grad_gamma and grad_beta are summed, so the result too

// out [cols] = the sum of `chunks` rows, 2 · cols apart.
void sum_chunks(const float* partial, int64_t chunks, int64_t cols, float* out) {
  std::fill(out, out + cols, 0.0f);
  for (int64_t chunk = 0; chunk < chunks; ++chunk, partial += 2 * cols) {
    for (int64_t c = 0; c < cols; ++c) out[c] += partial[c];
  }
}

}  // namespace

void layer_norm_backward(const float* x, const float* gamma, float eps, const float* grad, int64_t rows, int64_t cols,
                         float* grad_x, float* grad_gamma, float* grad_beta) {
  auto* const one_row = &VITRAIL_DISPATCH(layer_norm_backward_row);
  const int64_t chunks = ceil_div(rows, kRowsPerChunk);
  std::vector<float> partial(static_cast<size_t>(2 * chunks * cols), 0.0f);  // per chunk: grad_gamma, then grad_beta
  parallel_for(0, chunks, 1, [&](int64_t first, int64_t last) {
    for (int64_t r = first * kRowsPerChunk; r < std::min(rows, last * kRowsPerChunk); ++r) {
      float* const sums = partial.data() + r / kRowsPerChunk * 2 * cols;
      one_row(x + r * cols, gamma, eps, grad + r * cols, cols, grad_x + r * cols, grad_gamma ? sums : nullptr,
              grad_beta ? sums + cols : nullptr);
    }
  });
  if (grad_gamma) sum_chunks(partial.data(), chunks, cols, grad_gamma);
  if (grad_beta) sum_chunks(partial.data() + cols, chunks, cols, grad_beta);
}

}  // namespace vitrail::kernels
#endif
