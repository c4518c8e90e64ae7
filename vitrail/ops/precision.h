// SPDX-License-Identifier: Apache-2.0
#pragma once
// Mixed-precision training (Micikevicius et al. 2018): bf16 GEMMs with fp32 accumulation; master weights are fp32.
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// While an object lives, linear() and attention() on this thread compute f32 and bf16 inputs in `dtype`, as under
// torch.autocast("cpu", torch.bfloat16).  Inputs, weights and gradients are rounded to it for the GEMMs, accumulation
// is fp32, and results and saved tensors have it.  Gradients of weights are fp32.  Other operations keep the dtype of
// their inputs.  dtype: f32 (the default) or bf16; throws Error for others.
class MixedPrecision {
 public:
  explicit MixedPrecision(DType dtype);
  ~MixedPrecision();
  MixedPrecision(const MixedPrecision&) = delete;
  MixedPrecision& operator=(const MixedPrecision&) = delete;
  static DType current();

 private:
  DType previous_;
};

// Whether this processor multiplies bf16.  Elsewhere operands are rounded to bf16 and multiplied in fp32.
bool has_bf16_gemm();

// The dtype of the operands of a GEMM with input x: the scope's dtype for f32 and bf16, f64 for f64, else f32.
DType gemm_dtype(const Tensor& x, const char* where);

}  // namespace vitrail::ops
