// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/rowwise/row_sum_internal.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/rowwise/row_sum.cpp"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/isa/vector_memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

// out = factor · Σ_r x[r], plus out if `accumulate`.  Four accumulators hide the latency of the additions.
void scaled_row_sum(const float* x, int64_t ldx, int64_t rows, int64_t cols, float factor, bool accumulate,
                    float* out) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto f = hn::Set(d, factor);
  const auto store = [&](auto sum, int64_t c) HWY_ATTR {
    hn::StoreU(hn::MulAdd(sum, f, accumulate ? hn::LoadU(d, out + c) : hn::Zero(d)), d, out + c);
  };
  int64_t c = 0;
  for (; c + 4 * lanes <= cols; c += 4 * lanes) {
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    for (int64_t r = 0; r < rows; ++r) {
      const float* const row = x + r * ldx + c;
      s0 = hn::Add(s0, hn::LoadU(d, row));
      s1 = hn::Add(s1, hn::LoadU(d, row + lanes));
      s2 = hn::Add(s2, hn::LoadU(d, row + 2 * lanes));
      s3 = hn::Add(s3, hn::LoadU(d, row + 3 * lanes));
    }
    store(s0, c);
    store(s1, c + lanes);
    store(s2, c + 2 * lanes);
    store(s3, c + 3 * lanes);
  }
  for (; c + lanes <= cols; c += lanes) {
    auto sum = hn::Zero(d);
    for (int64_t r = 0; r < rows; ++r) sum = hn::Add(sum, hn::LoadU(d, x + r * ldx + c));
    store(sum, c);
  }
  if (c == cols) return;
  const int64_t left = cols - c;
  auto sum = hn::Zero(d);
  for (int64_t r = 0; r < rows; ++r) sum = hn::Add(sum, load_first(d, x + r * ldx + c, left));
  store_first(d, hn::MulAdd(sum, f, accumulate ? load_first(d, out + c, left) : hn::Zero(d)), out + c, left);
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "vitrail/kernels/rowwise/scalar_rowwise_internal.h"

namespace vitrail::kernels {
namespace {

VITRAIL_EXPORT(scaled_row_sum, scalar::scaled_row_sum);

}  // namespace

void sum_of_rows(const float* x, int64_t ldx, int64_t rows, int64_t cols, float factor, float* out) {
  VITRAIL_DISPATCH(scaled_row_sum)(x, ldx, rows, cols, factor, false, out);
}
void add_rows(const float* x, int64_t ldx, int64_t rows, int64_t cols, float* out) {
  VITRAIL_DISPATCH(scaled_row_sum)(x, ldx, rows, cols, 1, true, out);
}

}  // namespace vitrail::kernels
#endif
