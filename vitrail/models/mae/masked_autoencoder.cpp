// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/mae/masked_autoencoder.h"

#include "vitrail/nn/trace.h"

namespace vitrail::models {

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

void MaskedAutoencoder::visit(nn::Visitor& visitor) {
  visitor.child("encoder", static_cast<nn::Module&>(encoder_));
  visitor.child("decoder", static_cast<nn::Module&>(decoder_));
}

}  // namespace vitrail::models
