// SPDX-License-Identifier: Apache-2.0
#pragma once
// A model's folder as the Hugging Face hub has it: config.json beside its weights.
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/weights/checkpoint.h"

namespace vitrail::weights {

struct HubFiles {
  std::filesystem::path folder;
  std::optional<std::filesystem::path> config;               // config.json
  std::optional<std::filesystem::path> preprocessor_config;  // preprocessor_config.json
  std::vector<std::filesystem::path> weights;                // one file, or all shards; never empty

  Checkpoint open() const { return Checkpoint::open(weights); }
};

// Weights are the first there is of model.safetensors, model.safetensors.index.json (shards), pytorch_model.bin,
// pytorch_model.bin.index.json (shards), model.pth, model.pt, model.npz.  Throws Error for a path that is no folder, a
// folder without any of them, or an index that cannot be read, names files outside the folder, or files that are
// absent.
HubFiles find_hub_files(const std::filesystem::path& folder);

// Writes config.json and model.safetensors, each whole or not at all, and makes the folder where it is missing.  timm,
// transformers and safetensors open the result.
void write_hub_folder(const std::filesystem::path& folder, const std::string& config_json,
                      const std::vector<std::pair<std::string, Tensor>>& tensors);

}  // namespace vitrail::weights
