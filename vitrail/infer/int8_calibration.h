#pragma once
// Making a model ready for int8 with pictures of the kind that it will see.
#include <string>
#include <vector>

#include "vitrail/models/vision_transformer.h"

namespace vitrail::infer {

// Single channels whose activations are large leave few of the 255 steps to the others.  The model computes what it
// computed, but for rounding, after this:
//  - The channels that a LayerNorm gives out are divided, and the weights that read them multiplied, by
//    s = √(max |x| / max |w|) for each channel (Xiao et al. 2023, "SmoothQuant", eq. 4 with α = 0.5).
//  - The values of each attention head are turned by an orthogonal matrix and the weights that read them turned back,
//    so that each channel has a part of all (Ashkboos et al. 2024, "QuaRot", section 4).
// images: batches [B, C, H, W].
void smooth_channels(models::VisionTransformer& model, const std::vector<Tensor>& images);

struct Int8Sensitivity {
  std::string layer;  // "blocks.0.attn.qkv"
  double error;       // of the logits (without a head: of the pooled features) when this layer alone is in int8: the
                      // length of the difference by the length of what it differs from
};

// Every linear layer of the blocks, the worst first.
std::vector<Int8Sensitivity> int8_sensitivity(const models::VisionTransformer& model,
                                              const std::vector<Tensor>& images);

// The fewest layers to keep out of int8 so that the others' errors together (the root of the sum of their squares, as
// errors that know nothing of each other add up) stay within `tolerance`.
std::vector<std::string> layers_to_keep(const std::vector<Int8Sensitivity>& sensitivity, double tolerance);

}  // namespace vitrail::infer
