// SPDX-License-Identifier: Apache-2.0
#pragma once
// The triangular factor of a symmetric positive definite matrix.
#include <cstdint>
#include <vector>

namespace vitrail {

// matrix [n, n], row-major, of which the lower triangle is read → L with L Lᵀ = matrix; above its diagonal are zeros.
// Some n³ / 3 operations.  Throws Error where the matrix is not positive definite, or not finite.
std::vector<double> cholesky(std::vector<double> matrix, int64_t n);

}  // namespace vitrail
