// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rotation of the attention heads' values (Ashkboos et al. 2024, "QuaRot", section 4).
#include "vitrail/quantize/block_layers_internal.h"

namespace vitrail::quantize {

// Multiplies the values v of every attention head by an orthogonal matrix R, and the head's columns W of the output
// projection by its transpose: (W Rᵀ)(R v) = W v.  R spreads outlier channels over all channels of the head.  Attention
// is linear in the values, so the model computes the same function up to rounding errors.  QuaRot's R is a Hadamard
// matrix; here it is a DCT-II with random signs, which exists for every head dimension.
//
// Changes the parameters attn.qkv and attn.proj.weight of every block, which must not be a mapped file's.
void rotate_values(const VitBlocks& blocks);

}  // namespace vitrail::quantize
