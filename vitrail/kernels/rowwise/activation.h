// SPDX-License-Identifier: Apache-2.0
#pragma once
// Element-wise activations, by the names that configurations use.
#include <cstdint>
#include <string>

namespace vitrail::kernels {

// gelu: x·Φ(x) by erf (Hendrycks & Gimpel 2016).  gelu_tanh: its tanh approximation.  quick_gelu: x·σ(1.702 x).
// silu: x·σ(x).
enum class Activation : uint8_t { none, gelu, gelu_tanh, quick_gelu, relu, silu, tanh };

const char* name_of(Activation activation);                // "gelu", …
Activation activation_from_name(const std::string& name);  // throws Error that lists the names

// y[i] = activation(x[i]); y may be x.
void activate(Activation activation, const float* x, float* y, int64_t n);

// x [rows, cols] += bias [cols], and y = activation(x) when y is not null (it may be x): what follows a product that
// knows neither.
void add_bias(Activation activation, const float* bias, float* x, float* y, int64_t rows, int64_t cols);

// out[i] = grad[i] · activation'(x[i]); out may be grad.
void activation_backward(Activation activation, const float* x, const float* grad, float* out, int64_t n);

// y[r, c] = silu(x[r, c]) · x[r, cols + c]: SwiGLU's gate on the two halves of a row.  ldx and ldy in elements.
void silu_gate(const float* x, int64_t ldx, float* y, int64_t ldy, int64_t rows, int64_t cols);

}  // namespace vitrail::kernels
