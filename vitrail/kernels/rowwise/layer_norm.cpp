// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/rowwise/layer_norm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/rowwise/layer_norm.cpp"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/isa/vector_memory-inl.h"
#include "vitrail/kernels/rowwise/row_reduction-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

void layer_norm_row(const float* x, const float* gamma, const float* beta, float eps, float* y, int64_t cols) {
  const D d;
  const RowStatistics statistics = row_statistics(x, cols, eps);
  const V mean = hn::Set(d, statistics.mean), rstd = hn::Set(d, statistics.rstd);
  const V one = hn::Set(d, 1.0f), zero = hn::Zero(d);
  for_each_vector(d, cols, [=](int64_t c, auto memory) HWY_ATTR {
    const V scale = gamma ? memory.load(gamma + c) : one, shift = beta ? memory.load(beta + c) : zero;
    const V normalized = hn::Mul(hn::Sub(memory.load(x + c), mean), rstd);
    memory.store(hn::MulAdd(normalized, scale, shift), y + c);
  });
}

void add_scaled_row(const float* x, const float* y, const float* scale, float* out, int64_t cols) {
  const V one = hn::Set(D(), 1.0f);
  for_each_vector(D(), cols, [=](int64_t c, auto memory) HWY_ATTR {
    const V factor = scale ? memory.load(scale + c) : one;
    memory.store(hn::MulAdd(factor, memory.load(y + c), memory.load(x + c)), out + c);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/rowwise/scalar_rowwise_internal.h"

namespace vitrail::kernels {
namespace {

VITRAIL_EXPORT(layer_norm_row, scalar::layer_norm_row);
VITRAIL_EXPORT(add_scaled_row, scalar::add_scaled);

constexpr int64_t kElementsPerTask = 8192;  // these take as long as starting the other threads
int64_t rows_per_task(int64_t cols) { return 1 + kElementsPerTask / (cols + 1); }

}  // namespace

void layer_norm(const float* x, int64_t ldx, const float* gamma, const float* beta, float eps, float* y, int64_t ldy,
                int64_t rows, int64_t cols) {
  auto* const norm_row = &VITRAIL_DISPATCH(layer_norm_row);
  parallel_for(0, rows, rows_per_task(cols), [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) norm_row(x + r * ldx, gamma, beta, eps, y + r * ldy, cols);
  });
}

void residual_layer_norm(const float* x, const float* y, const float* scale, const float* gamma, const float* beta,
                         float eps, float* out, float* norm, int64_t rows, int64_t cols) {
  auto* const add_row = &VITRAIL_DISPATCH(add_scaled_row);
  auto* const norm_row = &VITRAIL_DISPATCH(layer_norm_row);
  parallel_for(0, rows, rows_per_task(cols), [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      const int64_t at = r * cols;
      add_row(x + at, y + at, scale, out + at, cols);
      if (norm) norm_row(out + at, gamma, beta, eps, norm + at, cols);
    }
  });
}

}  // namespace vitrail::kernels
#endif
