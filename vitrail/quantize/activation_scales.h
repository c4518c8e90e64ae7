// SPDX-License-Identifier: Apache-2.0
#pragma once
// Static quantisation of activations: one scale for a whole tensor, chosen once from calibration images.  Sessions of
// vitrail do not need it, because they have a scale for each token; integer GEMMs of other runtimes do (onnx/export.h).
#include <map>
#include <string>
#include <vector>

#include "vitrail/models/vision_transformer.h"
#include "vitrail/tensor/affine_quantization.h"

namespace vitrail::quantize {

// The quantisation of the inputs of linear layers, by layer: those of the blocks ("blocks.0.attn.qkv"), and
// "patch_embed.proj" where it reads the pixels.  It minimises the expected error of the layer's output
// (activation_histogram_internal.h); tokens that the head reads individually count as much as all others together.
// model: with floating weights.  images: preprocessed calibration batches [B, C, H, W].  dtype: i8 for symmetric
// ranges with zero point 0, u8 for ranges with a zero point.  excluded: layers that are left out.
// Throws Error for a layer whose input is not finite, and for another dtype.
std::map<std::string, AffineQuantization> activation_scales(const models::VisionTransformer& model,
                                                            const std::vector<Tensor>& images, DType dtype,
                                                            const std::vector<std::string>& excluded = {});

}  // namespace vitrail::quantize
