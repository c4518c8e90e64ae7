// SPDX-License-Identifier: Apache-2.0
#pragma once
// "int8" in config.json.
#include <optional>
#include <string>
#include <vector>

namespace vitrail::models {

// Written by `convert --dtype int8`.  A model that has it runs in int8 unless the user asks for another precision.
struct Int8Config {
  // Linear layers that are sensitive to int8 and run in 16 bits instead: "blocks.0.mlp.fc2".
  std::vector<std::string> excluded{};
};

// The field of a config.json, which `path` names in errors; none if it has none.  Throws Error for a malformed one.
std::optional<Int8Config> read_int8_config(const std::string& config_json, const std::string& path);

// The text of a config.json with the field; without a value, without it.
std::string with_int8_config(const std::string& config_json, const std::optional<Int8Config>& int8);

}  // namespace vitrail::models
