// SPDX-License-Identifier: Apache-2.0
#pragma once
// The masked autoencoder (He et al. 2022, "Masked autoencoders are scalable vision learners"): a Vision Transformer
// that encodes a quarter of the patches, and a small one that predicts the pixels of the others.
#include "vitrail/models/mae/decoder.h"

namespace vitrail::models {

// Parameters: encoder.* with timm's names, decoder.*.  The positions, encoder.pos_embed and decoder.pos_embed, are not
// trained: kFixedPositions are the names for optim::GroupOptions::frozen.
class MaskedAutoencoder : public nn::Module {
 public:
  MaskedAutoencoder(const MaskedAutoencoderConfig& config, const ParamSource& params);
  // With an encoder that exists, of config.encoder, such as one that is to be trained further.
  MaskedAutoencoder(const MaskedAutoencoderConfig& config, VisionTransformer encoder, const ParamSource& decoder);

  // Images [B, C, H, W] and the patches that the encoder sees (draw_kept_patches()) → predictions for all patches
  // [B, N, C·P·P], each in the order (c, y, x) of ops::patchify(), for pixel_loss().  Throws Error as
  // VisionTransformer::encode() does.
  Tensor forward(const Tensor& images, const PatchIndices& kept) const;

  const VisionTransformer& encoder() const { return encoder_; }
  VisionTransformer& encoder() { return encoder_; }
  const MaskedAutoencoderConfig& config() const { return config_; }
  std::string type() const override { return "MaskedAutoencoder"; }
  void visit(nn::Visitor& visitor) override;

 private:
  MaskedAutoencoderConfig config_;
  VisionTransformer encoder_;
  MaeDecoder decoder_;
};

inline constexpr std::array<const char*, 2> kFixedPositions{"encoder.pos_embed", "decoder.pos_embed"};

}  // namespace vitrail::models
