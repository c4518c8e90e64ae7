// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checkpoints of tensors, and key maps of rules.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/weights/checkpoint.h"
#include "vitrail/weights/key_map.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::weights {

inline std::shared_ptr<const Checkpoint> checkpoint_of(const std::vector<std::pair<std::string, Tensor>>& tensors) {
  const auto path = testing::scratch_folder() / "weights.safetensors";
  write_safetensors(path, tensors);
  return std::make_shared<const Checkpoint>(Checkpoint::open(path));
}

// The JSON of a key map with these rules, which commas separate.
inline std::string map_with(const std::string& rules) { return R"~({"name": "own", "rules": [)~" + rules + "]}"; }

inline KeyMap map_of(const std::string& rules) { return KeyMap::parse(map_with(rules), "map.json"); }

// The message about a key map, or "no error".
inline std::string map_error(const std::string& json) {
  try {
    KeyMap::parse(json, "map.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace vitrail::weights
