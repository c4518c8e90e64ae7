// SPDX-License-Identifier: Apache-2.0
#pragma once
// Models that are distributed with vitrail, found by name.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace vitrail::models {

struct BundledModel {
  std::string name;
  std::filesystem::path folder;  // in hub layout
};

constexpr const char* kDefaultModel = "imagenet-tiny";     // the program's default model
constexpr const char* kDefaultSegmenter = "segment-tiny";  // that of `vitrail segment`

// All bundled models, sorted by name: folders with a config.json in the folder models of the installation folders
// (base/installed_files.h).  If a name occurs several times, the first folder is used.
std::vector<BundledModel> bundled_models();

// The folder of the model with this name, if there is one.
std::optional<std::filesystem::path> find_bundled(const std::string& name);

}  // namespace vitrail::models
