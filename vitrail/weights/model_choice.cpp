// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/model_choice_internal.h"

#include <algorithm>

#include "vitrail/base/warning_pause_internal.h"
#include "vitrail/weights/checkpoint.h"

namespace vitrail::weights {
namespace {

constexpr size_t kMaxModels = 16;  // each is opened once: limits the time that hostile files take

}  // namespace

std::vector<ModelChoice> find_models(const std::vector<std::filesystem::path>& shards) {
  const WarningPause pause;
  std::vector<ModelChoice> models;
  size_t state_dicts = 1;
  for (size_t i = 0; i < std::min(state_dicts, kMaxModels); ++i) {
    Checkpoint checkpoint = Checkpoint::open(shards, i);
    const std::vector<std::string> keys = checkpoint.state_dicts();
    state_dicts = std::max<size_t>(keys.size(), 1);
    const std::string key = i < keys.size() ? keys[i] : "";
    std::vector<std::string> prefixes = checkpoint.strip_model_prefix();
    if (prefixes.empty()) prefixes.emplace_back();
    for (size_t prefix = 0; prefix < prefixes.size() && models.size() < kMaxModels; ++prefix) {
      const bool both = !key.empty() && !prefixes[prefix].empty();
      models.push_back({i, prefix, key + (both ? "/" : "") + prefixes[prefix]});
    }
  }
  return models;
}

}  // namespace vitrail::weights
