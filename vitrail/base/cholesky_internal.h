// SPDX-License-Identifier: Apache-2.0
#pragma once
// Cholesky factorisation of a symmetric positive definite matrix.
#include <cstdint>
#include <vector>

namespace vitrail {

// matrix [n, n], row-major; only its lower triangle is read.  Returns the lower triangular L [n, n] with L Lᵀ = matrix
// and zeros above the diagonal.  About n³ / 3 operations.  Throws Error if the matrix is not positive definite or not
// finite.
std::vector<double> cholesky(std::vector<double> matrix, int64_t n);

}  // namespace vitrail
