// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/cholesky_internal.h"

#include <algorithm>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"

namespace vitrail {

// Right-looking algorithm (Golub & Van Loan, "Matrix Computations", section 4.2.5): after each column, the rank-1
// update of the trailing matrix runs row by row, because rows are contiguous in memory.
std::vector<double> cholesky(std::vector<double> matrix, int64_t n) {
  std::vector<double> column(static_cast<size_t>(n));
  for (int64_t k = 0; k < n; ++k) {
    double* const pivot = matrix.data() + k * n + k;
    if (!(*pivot > 0) || !std::isfinite(*pivot)) {
      throw Error("cholesky", "a positive definite matrix", str("a pivot of ", *pivot, " in row ", k));
    }
    *pivot = std::sqrt(*pivot);
    std::fill(pivot + 1, pivot + n - k, 0.0);
    for (int64_t i = k + 1; i < n; ++i) {
      double& below = matrix[static_cast<size_t>(i * n + k)];
      below /= *pivot;
      column[static_cast<size_t>(i)] = below;
    }
    parallel_for(k + 1, n, 1 + 32768 / (n - k), [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        double* const row = matrix.data() + i * n;
        const double factor = column[static_cast<size_t>(i)];
        for (int64_t j = k + 1; j <= i; ++j) row[j] -= factor * column[static_cast<size_t>(j)];
      }
    });
  }
  return matrix;
}

}  // namespace vitrail
