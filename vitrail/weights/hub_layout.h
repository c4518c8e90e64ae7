// SPDX-License-Identifier: Apache-2.0
#pragma once
// The folder layout of the Hugging Face hub: config.json and weights in one folder.
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::weights {

// The files that an index of shards, {"weight_map": {tensor name: file name}}, names.  Throws Error if it is invalid.
std::vector<std::filesystem::path> shards_of(const std::filesystem::path& index);

// The names of the shards in an index, which may be missing.
std::vector<std::string> shard_names(const std::filesystem::path& index);

// The weights among the names of a folder's files, in the order of find_hub_weights(); empty if there are none.
std::string choose_weights(const std::vector<std::string>& names);

// The weights of a folder, one file or all shards: the first existing one of model.safetensors,
// model.safetensors.index.json (shards), pytorch_model.bin, pytorch_model.bin.index.json (shards), model.pth, model.pt,
// model.npz, open_clip_model.safetensors, open_clip_pytorch_model.bin, or the only *.safetensors.  Throws Error if the
// path is not a folder, has none of these files, or an index is invalid: unreadable, or naming files that are missing
// or outside the folder.
std::vector<std::filesystem::path> find_hub_weights(const std::filesystem::path& folder);

// Throws Error if the folder has a file of transformers' image processor, processor_config.json or
// preprocessor_config.json, that is not among those to be written: it would be read with the new weights.
void check_no_other_processor(const std::filesystem::path& folder, const std::vector<std::string>& written);

// Writes model.safetensors, config.json and, unless it is empty, preprocessor_config.json, and creates the folder if
// necessary.  New weights are never beside an old configuration (AtomicFile::commit_together).  The result can be
// opened by timm, transformers and safetensors.
void write_hub_folder(const std::filesystem::path& folder, const std::string& config_json,
                      const std::vector<std::pair<std::string, Tensor>>& tensors,
                      const std::string& preprocessor_json = "");

}  // namespace vitrail::weights
