// SPDX-License-Identifier: Apache-2.0
#pragma once
// Balances the range of activation channels before int8 quantisation: rotation and smoothing factors.
#include <vector>

#include "vitrail/models/vision_transformer.h"

namespace vitrail::quantize {

// Activations have one scale per token, so a channel with outliers leaves few of the 256 levels to the other channels.
// Two changes of the parameters remove outliers; the model computes the same function up to rounding errors.
//  1. rotate_values() (rotation_internal.h).
//  2. Smoothing factors (Xiao et al. 2023, "SmoothQuant") for the inputs of attn.proj and, in pre-norm models, of
//     attn.qkv and mlp.fc1.  The producer of the input (value projection, LayerNorm) is divided by the factors, the
//     layer's weight multiplied.  They minimise the expected error of int8 GEMMs (smoothing_factors_internal.h).
// images: calibration batches [B, C, H, W] at the model's size.  Afterwards no parameter requires a gradient, and all
// parameters may be written to (none is a mapped file's).
void smooth_activations(models::VisionTransformer& model, const std::vector<Tensor>& images);

}  // namespace vitrail::quantize
