// SPDX-License-Identifier: Apache-2.0
#pragma once
// The first half of a softmax, for losses, which need the logarithm of the sum besides.
#include <cstdint>

namespace vitrail::kernels {

template <class T>
struct RowExponentials {
  T most;  // the row's largest element
  T sum;   // Σ e[c]
};

// e[c] = exp(x[c] − most) of one row; e may be x.  A row of −∞ alone gives zeros and the sum 0.
RowExponentials<float> exponentials(const float* x, float* e, int64_t cols);
RowExponentials<double> exponentials(const double* x, double* e, int64_t cols);

}  // namespace vitrail::kernels
