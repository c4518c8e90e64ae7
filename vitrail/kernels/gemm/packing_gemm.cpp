// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/gemm/packing_gemm_internal.h"

#include <algorithm>

#include "vitrail/kernels/gemm/packed_gemm_internal.h"
#include "vitrail/kernels/isa/aligned_array_internal.h"
#include "vitrail/kernels/rowwise/bf16_conversion.h"

namespace vitrail::kernels {
namespace {

// A contiguous row-major copy of op(x) [rows, columns] in fp32.
template <class T>
AlignedArray<float> row_major(bool transposed, int64_t rows, int64_t columns, const T* x, int64_t ld) {
  AlignedArray<float> copy = aligned_array<float>(rows * columns);
  constexpr int64_t kBlock = 16;  // a cache line of each row of x
  for (int64_t first = 0; first < columns; first += kBlock) {
    const int64_t last = std::min(columns, first + kBlock);
    for (int64_t row = 0; row < rows; ++row) {
      float* const to = copy.get() + row * columns;
      for (int64_t i = first; i < last; ++i) to[i] = static_cast<float>(transposed ? x[i * ld + row] : x[row * ld + i]);
    }
  }
  return copy;
}

}  // namespace

void packing_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda,
                  const float* b, int64_t ldb, bool accumulate, float* c, int64_t ldc) {
  const AlignedArray<float> weight = row_major(!transpose_b, n, k, b, ldb);
  const auto packed = make_fp32_gemm(weight.get(), nullptr, n, k);
  const AlignedArray<float> rows = transpose_a ? row_major(true, m, k, a, lda) : nullptr;
  Epilogue epilogue;
  if (accumulate) epilogue.residual = {c, ldc};
  const MatrixView<const float> x = rows ? MatrixView<const float>{rows.get(), k} : MatrixView<const float>{a, lda};
  packed->run({x, {c, ldc}, {.count = m}, epilogue, nullptr});
}

// make_bf16_gemm takes fp32 and rounds it, which leaves values of bf16 as they are.
void packing_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const BFloat16* a, int64_t lda,
                  const BFloat16* b, int64_t ldb, const float* bias, float* c, int64_t ldc) {
  const AlignedArray<float> weight = row_major(!transpose_b, n, k, b, ldb), x = row_major(transpose_a, m, k, a, lda);
  const auto packed = make_bf16_gemm(weight.get(), bias, n, k, neon_bf16_microkernel(), kNeonMatrixPanel);
  const LinearRows rows{.count = m};
  const auto scratch = aligned_array<std::byte>(static_cast<int64_t>(packed->scratch_bytes(rows)));
  packed->run({{x.get(), k}, {c, ldc}, rows, {}, scratch.get()});
}

void packing_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const BFloat16* a, int64_t lda,
                  const BFloat16* b, int64_t ldb, const float* bias, BFloat16* c, int64_t ldc) {
  const auto wide = aligned_array<float>(m * n);
  packing_gemm(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, bias, wide.get(), n);
  for (int64_t row = 0; row < m; ++row) round_to_bf16(wide.get() + row * n, c + row * ldc, n);
}

}  // namespace vitrail::kernels
