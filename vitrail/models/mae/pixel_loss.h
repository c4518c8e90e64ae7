// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a masked autoencoder learns: the pixels of masked patches.
#include "vitrail/models/mae/config.h"
#include "vitrail/models/vision_transformer.h"

namespace vitrail::models {

// What the predictions for images [B, C, H, W] should be, [B, N, C·P·P]: the pixels, with norm_pix those of each patch
// normalised (patch_pixels.h).
Tensor pixel_targets(const Tensor& images, const MaskedAutoencoderConfig& config);

// The mean squared error of the masked patches' predictions [B, N, C·P·P], as a scalar.  Differentiable in the
// predictions.
Tensor pixel_loss(const Tensor& predictions, const Tensor& images, const PatchIndices& kept,
                  const MaskedAutoencoderConfig& config);

// Images that show what is predicted, [B, C, rows·P, columns·P], in the units of the input.
struct Reconstruction {
  Tensor masked;         // masked patches are 0, the mean colour of the data set
  Tensor reconstructed;  // masked patches are the predictions; with norm_pix in the patch's own mean and deviation
};
Reconstruction reconstruction(const Tensor& predictions, const Tensor& images, const PatchIndices& kept,
                              const MaskedAutoencoderConfig& config);

}  // namespace vitrail::models
