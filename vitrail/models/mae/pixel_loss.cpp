// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/mae/pixel_loss.h"

#include "vitrail/models/mae/patch_pixels.h"
#include "vitrail/ops/mean_squared_error.h"
#include "vitrail/ops/patchify.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::models {
namespace {

Tensor patches_of(const Tensor& images, const MaskedAutoencoderConfig& config) {
  return ops::patchify(images.detach(), config.encoder.patch_size[0], config.encoder.patch_size[1]);
}

// Copies the patches `kept` of `from` to their places in `to`, [B, N, pixels] both.
void copy_kept(const Tensor& from, const PatchIndices& kept, const Tensor& to) {
  for (size_t b = 0; b < kept.size(); ++b) {
    const auto image = static_cast<int64_t>(b);
    for (const int64_t patch : kept[b])
      to.select(0, image).select(0, patch).copy_(from.select(0, image).select(0, patch));
  }
}

}  // namespace

Tensor pixel_targets(const Tensor& images, const MaskedAutoencoderConfig& config) {
  const Tensor patches = patches_of(images, config);
  return config.norm_pix ? normalized_patches(patches, patch_statistics(patches)) : patches;
}

Tensor pixel_loss(const Tensor& predictions, const Tensor& images, const PatchIndices& kept,
                  const MaskedAutoencoderConfig& config) {
  const PatchIndices masked = masked_patches(kept, predictions.size(1));
  return ops::mean_squared_error(ops::gather_tokens(predictions, masked),
                                 ops::gather_tokens(pixel_targets(images, config), masked));
}

Reconstruction reconstruction(const Tensor& predictions, const Tensor& images, const PatchIndices& kept,
                              const MaskedAutoencoderConfig& config) {
  const Tensor patches = patches_of(images, config), predicted = predictions.detach();
  const Tensor masked = Tensor::zeros(patches.shape(), patches.dtype());
  const Tensor reconstructed =
      config.norm_pix ? denormalized_patches(predicted, patch_statistics(patches)) : predicted.clone();
  copy_kept(patches, kept, masked);
  copy_kept(patches, kept, reconstructed);
  const std::array<int64_t, 2>& patch = config.encoder.patch_size;
  const std::array<int64_t, 2> grid{images.size(2) / patch[0], images.size(3) / patch[1]};
  return {image_of_patches(masked, grid, patch), image_of_patches(reconstructed, grid, patch)};
}

}  // namespace vitrail::models
