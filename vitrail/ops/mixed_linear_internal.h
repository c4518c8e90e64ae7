// SPDX-License-Identifier: Apache-2.0
#pragma once
// linear() in mixed precision (precision.h): operands and results are bf16, accumulation is fp32.
#include <vector>

#include "vitrail/kernels/rowwise/activation.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

struct MixedLinear {
  Tensor result;  // [..., out] bf16: activation(x Wᵀ + b)
  Tensor pre;     // x Wᵀ + b; undefined unless it is saved and differs from `result`
};

// x [..., in] and weight [out, in]: contiguous bf16; bias [out]: f32 or undefined.  The activation is applied to the
// rounded x Wᵀ + b.  save: return `pre` for the backward pass.
MixedLinear mixed_linear(const Tensor& x, const Tensor& weight, const Tensor& bias, kernels::Activation activation,
                         bool save);

// The gradients that are needed.  The images of a model and frozen weights need none.
struct LinearGrads {
  bool x, weight, bias;
};

// The gradients of x (grad_x_dtype: f32 or bf16), weight and bias (f32), undefined unless needed.  grad is that of the
// result, f32 or bf16; it is rounded to bf16 for the GEMMs.
std::vector<Tensor> mixed_linear_backward(const Tensor& x, const Tensor& weight, const Tensor& pre,
                                          kernels::Activation activation, const LinearGrads& needed, DType grad_x_dtype,
                                          const Tensor& grad);

}  // namespace vitrail::ops
