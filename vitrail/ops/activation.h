// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "vitrail/kernels/rowwise/activation.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

class OnnxGraph;

Tensor activation(const Tensor& x, kernels::Activation kind);  // element-wise; differentiable

// x [..., 2C] → silu(first half) · second half, [..., C] (Shazeer 2020, "GLU variants improve Transformer").
// Differentiable.
Tensor silu_gate(const Tensor& x);

// grad · activation'(x).  Both contiguous and f32, or both f64.  Returns grad for Activation::none.
Tensor activation_backward(kernels::Activation kind, const Tensor& x, const Tensor& grad);

// activation(x) as operators of ONNX (onnx_operators.h).
std::string onnx_activation(OnnxGraph& graph, kernels::Activation kind, const std::string& x);

}  // namespace vitrail::ops
