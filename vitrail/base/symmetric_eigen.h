// SPDX-License-Identifier: Apache-2.0
#pragma once
// Eigenvalues and eigenvectors of a real symmetric matrix.
#include <cstdint>
#include <vector>

namespace vitrail {

struct SymmetricEigen {
  std::vector<double> values;   // [n], largest first
  std::vector<double> vectors;  // [n, n]: row i has length 1 and belongs to values[i]
};

// matrix [n, n], row-major; the lower triangle must mirror the upper one.  Householder's tridiagonal form and the
// implicit QL method (Bowdler, Martin, Reinsch and Wilkinson 1968), on one thread: some 10 n³ operations.
// The same matrix gives the same bits.  Throws Error when an entry is not finite.
SymmetricEigen symmetric_eigen(std::vector<double> matrix, int64_t n);

}  // namespace vitrail
