// SPDX-License-Identifier: Apache-2.0
#pragma once
// The configuration of a masked autoencoder.
#include <string>

#include "vitrail/models/preprocessing.h"
#include "vitrail/models/vision_transformer_config.h"
#include "vitrail/weights/checkpoint.h"

namespace vitrail::models {

struct MaskedAutoencoderConfig {
  VisionTransformerConfig encoder{};  // without a head, and with a final norm in front of the pooling
  int64_t decoder_dim = 512, decoder_depth = 8, decoder_heads = 16;
  int64_t decoder_mlp_hidden = 2048;
  double mask_ratio = 0.75;
  bool norm_pix = false;  // the targets are the pixels of each patch normalised by their own mean and variance
  Preprocessing preprocessing{};

  int64_t patch_pixels() const { return encoder.patch_size[0] * encoder.patch_size[1] * encoder.in_chans; }
};

// Returns the configuration.  Throws Error naming the field whose value or combination is invalid.
const MaskedAutoencoderConfig& checked(const MaskedAutoencoderConfig& config);

// The decoder's blocks, which have the epsilon and activation of the encoder's.
VisionTransformerConfig decoder_blocks_of(const MaskedAutoencoderConfig& config);

// Reads transformers' config.json of a vit_mae, and its preprocessor_config.json (empty: none).  The paths name them in
// errors.
MaskedAutoencoderConfig read_mae_config(const std::string& config, const std::string& path,
                                        const std::string& preprocessor, const std::string& preprocessor_path);

// The configuration of an authors' file.  Its tensors give all sizes but the numbers of heads: the published models
// with 768, 1024 and 1280 features have 12, 16 and 16, and their decoders 16.  norm_pix, which the file does not have,
// is false.  Throws Error for other widths.
MaskedAutoencoderConfig mae_config_of_file(const weights::Checkpoint& checkpoint);

// config.json and preprocessor_config.json of transformers' ViTMAEForPreTraining.  Throws Error for an encoder that its
// class does not have, such as one with registers.
std::string write_mae_config(const MaskedAutoencoderConfig& config);
std::string write_mae_processor(const MaskedAutoencoderConfig& config);

}  // namespace vitrail::models
