// SPDX-License-Identifier: Apache-2.0
#pragma once
// linear() in mixed precision (precision.h): operands and results in bf16, sums in fp32.  Private to ops.
#include <vector>

#include "vitrail/kernels/rowwise/activation.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

struct MixedLinear {
  Tensor result;  // [..., out] bf16: activation(x Wᵀ + b)
  Tensor before;  // the same before the activation; undefined unless it is kept and differs
};

// x [..., in] and weight [out, in] contiguous bf16, bias [out] f32 or undefined.  The activation is of the rounded
// sums.
MixedLinear mixed_linear(const Tensor& x, const Tensor& weight, const Tensor& bias, kernels::Activation activation,
                         bool keep);

// Which gradients are wanted: the images' own is not, a frozen weight's neither.
struct Wanted {
  bool x, weight, bias;
};

// The gradients of x (f32 or bf16, as asked for), weight and bias (f32), undefined where they are not wanted, from that
// of the result (f32 or bf16), which is rounded to bf16 before the products.
std::vector<Tensor> mixed_linear_backward(const Tensor& x, const Tensor& weight, const Tensor& before,
                                          kernels::Activation activation, const Wanted& wanted, DType grad_x_dtype,
                                          const Tensor& grad);

}  // namespace vitrail::ops
