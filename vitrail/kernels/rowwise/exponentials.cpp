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
  const float most = row_max(x, cols);
  return {most, exp_row(x, most, e, cols)};
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "vitrail/kernels/isa/isa.h"

namespace vitrail::kernels {
namespace {

VITRAIL_EXPORT(exponentials_row);

template <class T>
RowExponentials<T> plain_exponentials(const T* x, T* e, int64_t cols) {
  constexpr T kLowest = -std::numeric_limits<T>::infinity();
  T most = kLowest, sum = 0;
  for (int64_t c = 0; c < cols; ++c) most = std::max(most, x[c]);
  const T shift = most == kLowest ? T(0) : most;  // −∞ − (−∞) would be NaN
  for (int64_t c = 0; c < cols; ++c) sum += e[c] = std::exp(x[c] - shift);
  return {most, sum};
}

}  // namespace

RowExponentials<float> exponentials(const float* x, float* e, int64_t cols) {
  return active_isa() == Isa::scalar ? plain_exponentials(x, e, cols) : VITRAIL_DISPATCH(exponentials_row)(x, e, cols);
}
RowExponentials<double> exponentials(const double* x, double* e, int64_t cols) {
  return plain_exponentials(x, e, cols);
}

}  // namespace vitrail::kernels
#endif
