// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/rowwise/layer_norm.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/rowwise/layer_norm.cpp"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/isa/vector_memory-inl.h"
#include "vitrail/kernels/rowwise/row_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Three passes over a row that is in the first-level cache.  The variance is taken from the differences to the mean:
// E[x²] − mean² would cancel.
void layer_norm_row(const float* x, const float* gamma, const float* beta, float eps, float* y, int64_t cols) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float mean = sum_row(d, x, cols, [](V v) HWY_ATTR { return v; }) / static_cast<float>(cols);
  const V means = hn::Set(d, mean);
  const float squares = sum_row(d, x, cols, [means](V v) HWY_ATTR {
    const V difference = hn::Sub(v, means);
    return hn::Mul(difference, difference);
  });
  const V inverse = hn::Set(d, 1.0f / std::sqrt(squares / static_cast<float>(cols) + eps));
  auto normal = [&](V v, V g, V b) HWY_ATTR { return hn::MulAdd(hn::Mul(hn::Sub(v, means), inverse), g, b); };
  const V one = hn::Set(d, 1.0f), zero = hn::Zero(d);
  int64_t c = 0;
  for (; c + lanes <= cols; c += lanes) {
    const V g = gamma ? hn::LoadU(d, gamma + c) : one, b = beta ? hn::LoadU(d, beta + c) : zero;
    hn::StoreU(normal(hn::LoadU(d, x + c), g, b), d, y + c);
  }
  if (const int64_t left = cols - c; left > 0) {
    const V g = gamma ? load_first(d, gamma + c, left) : one, b = beta ? load_first(d, beta + c, left) : zero;
    store_first(d, normal(load_first(d, x + c, left), g, b), y + c, left);
  }
}

void add_scaled_row(const float* x, const float* y, const float* scale, float* out, int64_t cols) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V one = hn::Set(d, 1.0f);
  int64_t c = 0;
  for (; c + lanes <= cols; c += lanes) {
    const V s = scale ? hn::LoadU(d, scale + c) : one;
    hn::StoreU(hn::MulAdd(s, hn::LoadU(d, y + c), hn::LoadU(d, x + c)), d, out + c);
  }
  if (const int64_t left = cols - c; left > 0) {
    const V s = scale ? load_first(d, scale + c, left) : one;
    store_first(d, hn::MulAdd(s, load_first(d, y + c, left), load_first(d, x + c, left)), out + c, left);
  }
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

// Rows that are worth waking another thread for: a row element costs about 0.3 ns, a team about 2 µs.
int64_t rows_per_task(int64_t cols) { return 1 + 8192 / (cols + 1); }

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
