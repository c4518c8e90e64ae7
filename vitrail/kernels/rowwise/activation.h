// SPDX-License-Identifier: Apache-2.0
#pragma once
// Elementwise activations, with the names that model configurations use.
#include <cstdint>
#include <string>

namespace vitrail::kernels {

// gelu: x·Φ(x), computed with erf (Hendrycks & Gimpel 2016, "Gaussian Error Linear Units").  gelu_tanh: the tanh
// approximation of that paper.  quick_gelu: x·σ(1.702 x) (CLIP).  silu: x·σ(x).
enum class Activation : uint8_t { none, gelu, gelu_tanh, quick_gelu, relu, silu, tanh };

const char* name_of(Activation activation);                // "gelu", …
Activation activation_from_name(const std::string& name);  // any but "none"; otherwise throws Error with the names

// y[i] = activation(x[i]).  y may be x.
void activate(Activation activation, const float* x, float* y, int64_t n);

// x [rows, cols] += bias [cols], then y = activation(x) unless y is null.  y may be x.  The epilogue of a GEMM that has
// neither bias nor activation.
void add_bias(Activation activation, const float* bias, float* x, float* y, int64_t rows, int64_t cols);

// out[i] = grad[i] · activation'(x[i]).  out may be grad.
void activation_backward(Activation activation, const float* x, const float* grad, float* out, int64_t n);

// The gate of SwiGLU (Shazeer 2020, "GLU Variants Improve Transformer"): y[r, c] = silu(x[r, c]) · x[r, cols + c].
// x [rows, 2 cols] and y [rows, cols] have row strides ldx and ldy, in elements.
void silu_gate(const float* x, int64_t ldx, float* y, int64_t ldy, int64_t rows, int64_t cols);

}  // namespace vitrail::kernels
