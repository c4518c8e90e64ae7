// SPDX-License-Identifier: Apache-2.0
#pragma once
// The only wrapper around oneDNN (2.6 and 3.x).  In a build without oneDNN (VITRAIL_ONEDNN off), available() is false
// and the other functions throw std::logic_error (onednn_absent.cpp).  From its first use on, oneDNN is limited to the
// instruction set that VITRAIL_CPU or force_isa() asked for by then; scalar, under which vitrail does not call oneDNN,
// limits it to SSE4.  Everything is computed on the calling thread alone: the threads of OpenMP wait for each other in
// busy loops, which takes many times as long where other processes run.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "vitrail/base/dtype.h"
#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/kernels/isa/isa.h"

namespace vitrail::kernels::onednn {

bool available();

// The instruction set that oneDNN uses, rounded down to one of ours.
Isa effective_isa();

// c [m, n] = op(a) op(b) (+ c with accumulate), row-major.
void sgemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda,
           const float* b, int64_t ldb, bool accumulate, float* c, int64_t ldc);

// c [m, n] = op(a) op(b) + bias [n] (null: none), row-major, no operand empty; c_type is f32 or bf16.  oneDNN's
// primitives are cached by shape and strides.
void matmul_bf16(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const BFloat16* a, int64_t lda,
                 const BFloat16* b, int64_t ldb, const float* bias, DType c_type, void* c, int64_t ldc);

// y [rows, out] = x [rows, in] Wᵀ + b in f32 by oneDNN's matmul.  The weight has one layout for every number of rows:
// the one that oneDNN prefers for kTypicalRows.  run() may be called by several threads at once; it uses
// thread_scratch(). The primitives are cached by rows and ldx.
class PackedMatmul {
 public:
  static constexpr int64_t kTypicalRows = 197;  // the tokens of one 224 × 224 image in 16 × 16 patches

  // weight [out, in] row-major, neither empty; bias [out] or null.  Both are read here and not kept.
  PackedMatmul(const float* weight, const float* bias, int64_t out, int64_t in);
  ~PackedMatmul();
  PackedMatmul(PackedMatmul&&) noexcept;

  // False if for some number of rows oneDNN has only a reference implementation with this layout.
  bool fast() const;

  // y is contiguous: for other results oneDNN has only its reference implementation.
  void run(const float* x, int64_t ldx, float* y, int64_t rows) const;
  void prepare(int64_t rows, int64_t ldx) const;
  size_t packed_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vitrail::kernels::onednn
