// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "vitrail/base/dtype.h"

namespace vitrail::kernels {

// gemm() of linear.h by our own kernels, for a build without oneDNN: packs op(B) as the weight of a linear layer that
// is run once.  m, n and k are at least 1.
void packing_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda,
                  const float* b, int64_t ldb, bool accumulate, float* c, int64_t ldc);

// Likewise of bf16 operands, for Isa::neon_bf16.
void packing_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const BFloat16* a, int64_t lda,
                  const BFloat16* b, int64_t ldb, const float* bias, float* c, int64_t ldc);
void packing_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const BFloat16* a, int64_t lda,
                  const BFloat16* b, int64_t ldb, const float* bias, BFloat16* c, int64_t ldc);

}  // namespace vitrail::kernels
