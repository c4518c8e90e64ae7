// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files of masked autoencoders with their decoders: folders of transformers' ViTMAEForPreTraining, and the authors'
// checkpoints (facebookresearch/mae).  Both have the pixels of a prediction in the order (y, x, c).
#include "vitrail/models/configured_files.h"
#include "vitrail/models/mae/masked_autoencoder.h"
#include "vitrail/models/model_files.h"
#include "vitrail/models/written_model.h"

namespace vitrail::models {

// Whether weights have an encoder and a decoder of these.
bool is_masked_autoencoder(const ModelFiles& files);

using MaskedAutoencoderFiles = ConfiguredFiles<MaskedAutoencoderConfig>;

// Reads a folder of ViTMAEForPreTraining, or an authors' file with or without a config.json of transformers beside it
// (mae_config_of_file()).  Throws Error for other files.
MaskedAutoencoderFiles open_masked_autoencoder(const ModelFiles& files);

// In eval mode with f32 weights.  Throws one Error that lists all missing, extra and misshapen keys.
MaskedAutoencoder load_masked_autoencoder(const MaskedAutoencoderFiles& files);

enum class MaeNames : uint8_t { transformers, authors };

// The tensors under these names, with the order of pixels that goes with them.
NamedTensors mae_tensors(const MaskedAutoencoder& model, MaeNames names);

// A folder of ViTMAEForPreTraining: config.json, preprocessor_config.json and model.safetensors.  Throws Error for an
// encoder that this class does not have.
void write_masked_autoencoder(const std::filesystem::path& folder, const MaskedAutoencoder& model);

}  // namespace vitrail::models
