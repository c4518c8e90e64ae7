// SPDX-License-Identifier: Apache-2.0
#pragma once
// Mixed precision (Micikevicius et al. 2018): products of bf16 operands, summed in fp32, over weights that stay fp32.
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// While one lives, linear() and attention() on this thread take f32 and bf16 operands in `dtype`: inputs and weights
// are rounded to it, sums are fp32, results and what the backward keeps have it, and so have the gradients that go into
// a product.  Weights' own gradients are fp32.  Everything else keeps the dtype it is given, as under
// torch.autocast("cpu", torch.bfloat16).  f32 (the default) or bf16; another is an Error.
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

// What a product of this tensor takes its operands in: the scope's dtype for f32 and bf16, f64 for f64, else f32.
DType product_dtype(const Tensor& x, const char* where);

}  // namespace vitrail::ops
