// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace vitrail::kernels {

// gemm() of linear.h by our own kernels, for a build without oneDNN: packs op(B) as the weight of a linear layer that
// is run once.  m, n and k are at least 1.
void packing_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda,
                  const float* b, int64_t ldb, bool accumulate, float* c, int64_t ldc);

}  // namespace vitrail::kernels
