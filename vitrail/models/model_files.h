// SPDX-License-Identifier: Apache-2.0
#pragma once
// The files of a model, opened once: what a command knows of them is handed on, not their path.
#include <concepts>
#include <filesystem>
#include <memory>
#include <vector>

#include "vitrail/weights/checkpoint.h"

namespace vitrail::models {

// Where one is expected, a path stands for it: a folder in hub layout (config.json beside model.safetensors or
// pytorch_model.bin), the folder of a training run (its folder model), a weights file, or the name of a bundled model
// (bundled.h) or one of the hub, which is downloaded if necessary.
struct ModelFiles {
  // Opens the weights, without reading them.  Throws Error for a missing or malformed file.
  explicit ModelFiles(const std::filesystem::path& path);
  template <std::convertible_to<std::filesystem::path> Path>
  ModelFiles(const Path& path) : ModelFiles(std::filesystem::path(path)) {}  // NOLINT(google-explicit-constructor)

  std::filesystem::path path;                  // as it was given
  std::vector<std::filesystem::path> weights;  // one file, or all shards
  std::filesystem::path config;                // its path, whether the file exists or not
  weights::Checkpoint first;                   // the first of several state dicts, under the file's names

  // The weights under the names that key maps are for.  Of several state dicts, a warning names the one that is used.
  std::shared_ptr<weights::Checkpoint> checkpoint(size_t state_dict = 0) const;
};

}  // namespace vitrail::models
