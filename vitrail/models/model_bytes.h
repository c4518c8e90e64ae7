// SPDX-License-Identifier: Apache-2.0
#pragma once
// Models whose files are in memory: part of a program, decrypted, or from a database.
#include <string>

#include "vitrail/models/load.h"
#include "vitrail/models/sam/sam.h"
#include "vitrail/weights/file_bytes.h"

namespace vitrail::models {

struct ModelBytes {
  // A safetensors file.  Tensors of the model view these bytes: `weights.owner` keeps them alive, and without an owner
  // they must outlive the model.  Errors name `weights.where`.
  weights::FileBytes weights;
  std::string config = {};        // the text of config.json; may be empty if options.config names an architecture
  std::string preprocessor = {};  // the text of preprocessor_config.json, of a model of transformers
};

// These do what open_model() and load_sam() do with files.  A dual model's tokenizer is always in files.
OpenedModel open_model(const ModelBytes& bytes, const LoadOptions& options = {});
Sam load_sam(const ModelBytes& bytes, const SamLoadOptions& options = {});

// The weights under the names of the file.
weights::Checkpoint open_checkpoint(const ModelBytes& bytes);

}  // namespace vitrail::models
