// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/mae/masked_autoencoder.h"

#include "vitrail/models/mae/patch_pixels.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/mean_squared_error.h"
#include "vitrail/ops/patchify.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::models {
namespace {

// Copies the patches `kept` of `from` to their places in `to`, [B, N, pixels] both.
void copy_kept(const Tensor& from, const PatchIndices& kept, const Tensor& to) {
  for (size_t b = 0; b < kept.size(); ++b) {
    const auto image = static_cast<int64_t>(b);
    for (const int64_t patch : kept[b])
      to.select(0, image).select(0, patch).copy_(from.select(0, image).select(0, patch));
  }
}

}  // namespace

MaskedAutoencoder::MaskedAutoencoder(const MaskedAutoencoderConfig& config, const ParamSource& params)
    : MaskedAutoencoder(config, VisionTransformer(checked(config).encoder, params.child("encoder")),
                        params.child("decoder")) {}

MaskedAutoencoder::MaskedAutoencoder(const MaskedAutoencoderConfig& config, VisionTransformer encoder,
                                     const ParamSource& decoder)
    : config_(checked(config)), encoder_(std::move(encoder)), decoder_(config_, decoder) {}

Tensor MaskedAutoencoder::forward(const Tensor& images, const PatchIndices& kept) const {
  const Tensor tokens = encoder_.encode(images, kept);
  return nn::traced(*this, decoder_.forward(tokens, kept, encoder_.grid_of(images.size(2), images.size(3))));
}

Tensor MaskedAutoencoder::patches_of(const Tensor& images) const {
  return ops::patchify(images.detach(), config_.encoder.patch_size[0], config_.encoder.patch_size[1]);
}

Tensor MaskedAutoencoder::targets(const Tensor& images) const {
  const Tensor patches = patches_of(images);
  return config_.norm_pix ? normalized_patches(patches, patch_statistics(patches)) : patches;
}

Tensor MaskedAutoencoder::loss(const Tensor& predictions, const Tensor& images, const PatchIndices& kept) const {
  const PatchIndices masked = masked_patches(kept, predictions.size(1));
  return ops::mean_squared_error(ops::gather_tokens(predictions, masked), ops::gather_tokens(targets(images), masked));
}

MaskedAutoencoder::Reconstruction MaskedAutoencoder::reconstruct(const Tensor& images, const PatchIndices& kept) const {
  const Tensor patches = patches_of(images), predictions = forward(images, kept).detach();
  const Tensor masked = Tensor::zeros(patches.shape(), patches.dtype());
  const Tensor reconstructed =
      config_.norm_pix ? denormalized_patches(predictions, patch_statistics(patches)) : predictions.clone();
  copy_kept(patches, kept, masked);
  copy_kept(patches, kept, reconstructed);
  const auto grid = encoder_.grid_of(images.size(2), images.size(3));
  return {image_of_patches(masked, grid, config_.encoder.patch_size),
          image_of_patches(reconstructed, grid, config_.encoder.patch_size)};
}

void MaskedAutoencoder::visit(nn::Visitor& visitor) {
  visitor.child("encoder", static_cast<nn::Module&>(encoder_));
  visitor.child("decoder", static_cast<nn::Module&>(decoder_));
}

}  // namespace vitrail::models
