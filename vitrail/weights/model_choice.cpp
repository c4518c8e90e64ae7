// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/model_choice_internal.h"

#include <algorithm>

#include "vitrail/base/warning_pause_internal.h"

namespace vitrail::weights {
namespace {

constexpr size_t kMaxModels = 16;  // each is opened once: limits the time that hostile files take

}  // namespace

std::vector<ModelChoice> find_models(const std::vector<std::filesystem::path>& shards, const Checkpoint& first) {
  const WarningPause pause;
  std::vector<ModelChoice> models;
  const std::vector<std::string> keys = first.state_dicts();
  const size_t state_dicts = std::clamp<size_t>(keys.size(), 1, kMaxModels);
  for (size_t i = 0; i < state_dicts; ++i) {
    Checkpoint checkpoint = i == 0 ? first : Checkpoint::open(shards, i);
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
