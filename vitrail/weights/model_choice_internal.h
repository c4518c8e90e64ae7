// SPDX-License-Identifier: Apache-2.0
#pragma once
// The models of a checkpoint that has several: averages beside the weights, a teacher beside its student.
#include <filesystem>
#include <string>
#include <vector>

#include "vitrail/weights/checkpoint.h"

namespace vitrail::weights {

struct ModelChoice {
  size_t state_dict = 0;  // index for Checkpoint::open()
  size_t prefix = 0;      // index for Checkpoint::strip_model_prefix()
  std::string name;       // for messages: the keys that lead there, and the prefix
};

// At least one and at most 16, in the order of use.  first: what Checkpoint::open(shards) returns, so that a file of
// one model is not read twice.  Throws Error like Checkpoint::open().
std::vector<ModelChoice> find_models(const std::vector<std::filesystem::path>& shards, const Checkpoint& first);

}  // namespace vitrail::weights
