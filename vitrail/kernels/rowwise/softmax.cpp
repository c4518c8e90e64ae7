// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/rowwise/softmax.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/rowwise/softmax.cpp"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/rowwise/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

void softmax_row(const float* x, float* y, int64_t cols) {
  const float sum = exp_row(x, row_max(x, cols), y, cols);
  scale_row(y, sum == 0 ? 0 : 1 / sum, y, cols);
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/rowwise/scalar_rowwise_internal.h"

namespace vitrail::kernels {
namespace {

VITRAIL_EXPORT(softmax_row, scalar::softmax_row);

constexpr int64_t kElementsPerTask = 2048;  // these take as long as starting the other threads

}  // namespace

void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
  auto* const one_row = &VITRAIL_DISPATCH(softmax_row);
  parallel_for(0, rows, 1 + kElementsPerTask / (cols + 1), [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) one_row(x + r * cols, y + r * cols, cols);
  });
}

}  // namespace vitrail::kernels
#endif
