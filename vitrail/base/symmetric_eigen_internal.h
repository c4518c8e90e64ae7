// SPDX-License-Identifier: Apache-2.0
#pragma once
// Eigendecomposition of a real symmetric matrix.
#include <cstdint>
#include <vector>

namespace vitrail {

struct SymmetricEigen {
  std::vector<double> values;   // [n], largest first
  std::vector<double> vectors;  // [n, n]: row i is the unit eigenvector of values[i]
};

// matrix [n, n], row-major and symmetric.  Householder tridiagonalisation, then the implicit QL method (Bowdler,
// Martin, Reinsch & Wilkinson 1968).  Single-threaded and deterministic; about 10 n³ operations.  Throws Error if an
// element is not finite.
SymmetricEigen symmetric_eigen(std::vector<double> matrix, int64_t n);

}  // namespace vitrail
