// SPDX-License-Identifier: Apache-2.0
#pragma once
// Initialisers of parameters, equal to those of PyTorch and timm.
#include "vitrail/tensor/param_source.h"

namespace vitrail::nn::init {

Initializer constant(double value);
inline Initializer zeros() { return constant(0); }
inline Initializer ones() { return constant(1); }
Initializer uniform(double bound);            // U(−bound, bound)
Initializer normal(double stddev);            // N(0, stddev²)
Initializer truncated_normal(double stddev);  // N(0, stddev²) cut at ±2, as torch.nn.init.trunc_normal_ does
Initializer xavier_uniform(int64_t fan_in, int64_t fan_out);
Initializer lecun_normal(int64_t fan_in);  // as timm: a normal of variance 1/fan_in, truncated at 2 deviations
// torch.nn.Linear's and Conv2d's default (Kaiming uniform with a = √5): U(−1/√fan_in, 1/√fan_in), weight and bias.
Initializer torch_default(int64_t fan_in);

struct LinearInit {
  Initializer weight, bias;
};

// The initialisation of a model's linear layers.  torch: PyTorch's defaults.  timm: truncated normal 0.02, zero biases.
// jax, jax_nlhb, moco: timm's weight_init of that name.  xavier: Xavier uniform, MLP biases N(0, 1e-6), others zero, as
// Google's ViT code and jeonsworld's ViT-pytorch.
enum class Scheme : uint8_t { torch, timm, jax, jax_nlhb, moco, xavier };
enum class Role : uint8_t { patch, qkv, attn_proj, mlp, head };

// The initialisers of a layer with this role.  weight [fan_out, fan_in], bias [fan_out].
LinearInit linear(Scheme scheme, Role role, int64_t fan_in, int64_t fan_out);

}  // namespace vitrail::nn::init
