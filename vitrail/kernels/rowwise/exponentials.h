// SPDX-License-Identifier: Apache-2.0
#pragma once
// The exponentials of a softmax with their sum, for losses that also need the logarithm of the sum.
#include <cstdint>

namespace vitrail::kernels {

template <class T>
struct RowExponentials {
  T max;  // the row's largest element
  T sum;  // Σ e[c]
};

// e[c] = exp(x[c] − max) over one row [cols].  e may be x.  A row of −∞ alone gives zeros and the sum 0.
RowExponentials<float> exponentials(const float* x, float* e, int64_t cols);
RowExponentials<double> exponentials(const double* x, double* e, int64_t cols);

}  // namespace vitrail::kernels
