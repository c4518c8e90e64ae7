// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files of models, and messages about their settings.
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/models/load.h"
#include "vitrail/models/preprocessing.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::models {

inline void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// The message about settings, or nothing if they are accepted.
inline std::string refusal(const Preprocessing& settings, int64_t channels = 3, const std::string& where = "") {
  try {
    check_preprocessing(settings, channels, where);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

using SamTensors = std::map<std::string, Tensor>;

// The tensors of a file under tests/fixtures/sam.
inline SamTensors sam_tensors(const std::string& name) {
  const auto checkpoint = ModelFiles(testing::fixture("sam/" + name)).checkpoint();
  SamTensors tensors;
  for (const std::string& key : checkpoint->names()) tensors[key] = checkpoint->tensor(key);
  return tensors;
}

// A file of these tensors, beside config.json if there is a configuration.
inline std::filesystem::path saved(const SamTensors& tensors, const std::string& config = "") {
  const auto path = testing::scratch_folder() / "model.safetensors";
  weights::write_safetensors(path, {tensors.begin(), tensors.end()});
  if (!config.empty()) std::ofstream(path.parent_path() / "config.json") << config;
  return path;
}

}  // namespace vitrail::models
