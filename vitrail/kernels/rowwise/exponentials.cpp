// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/rowwise/exponentials.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/rowwise/exponentials.cpp"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/rowwise/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

RowExponentials<float> exponentials_row(const float* x, float* e, int64_t cols) {
  const float max = row_max(x, cols);
  return {max, exp_row(x, max, e, cols)};
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "vitrail/kernels/rowwise/scalar_rowwise_internal.h"

namespace vitrail::kernels {
namespace {

VITRAIL_EXPORT(exponentials_row, scalar::exponentials_row);

}  // namespace

RowExponentials<float> exponentials(const float* x, float* e, int64_t cols) {
  return VITRAIL_DISPATCH(exponentials_row)(x, e, cols);
}
RowExponentials<double> exponentials(const double* x, double* e, int64_t cols) {
  return scalar::exponentials_row(x, e, cols);
}

}  // namespace vitrail::kernels
#endif
