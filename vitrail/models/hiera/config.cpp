// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/hiera/config.h"

#include <algorithm>

#include "vitrail/base/error.h"

namespace vitrail::models {
namespace {

constexpr int64_t kMaxDepth = 4096;

void check_stage(const HieraConfig& config, size_t index, const std::string& where) {
  const HieraStage& stage = config.stages[index];
  const std::string name = str(where, ": stage ", index);
  if (stage.depth < 1 || stage.depth > kMaxDepth || stage.num_heads < 1 || stage.dim < 1 ||
      stage.dim % stage.num_heads != 0) {
    throw Error(name, str("1 to ", kMaxDepth, " blocks, of a width that their heads divide"),
                str(stage.depth, " blocks of width ", stage.dim, " with ", stage.num_heads, " heads"));
  }
  if (stage.window < 0 || stage.mlp_hidden < 1) {
    throw Error(name, "windows of 0 or more cells and an MLP of 1 or more channels",
                str(stage.window, " and ", stage.mlp_hidden));
  }
  if (!stage.pools) return;
  if (index == 0) throw Error(name, "no pooling in front of the first stage", "pooling");
  const HieraStage& before = config.stages[index - 1];
  if (before.window % 2 != 0 || before.dim == stage.dim) {
    throw Error(name, "another width and even windows in the stage before it, whose map it pools",
                str("width ", before.dim, ", windows ", before.window));
  }
}

}  // namespace

int64_t HieraConfig::image_multiple() const {
  int64_t multiple = kHieraStride;
  for (const HieraStage& stage : stages) multiple *= stage.pools ? 2 : 1;
  return multiple;
}

std::vector<HieraBlockConfig> hiera_blocks(const HieraConfig& config, const std::string& where) {
  if (config.stages.empty()) throw Error(where, "one or more stages", "none");
  std::vector<HieraBlockConfig> blocks;
  for (size_t s = 0; s < config.stages.size(); ++s) {
    check_stage(config, s, where);
    const HieraStage& stage = config.stages[s];
    for (int64_t i = 0; i < stage.depth; ++i) {
      const HieraStage& before = i == 0 && s > 0 ? config.stages[s - 1] : stage;
      const bool global = std::ranges::find(config.global_blocks, std::ssize(blocks)) != config.global_blocks.end();
      blocks.push_back({.in_dim = before.dim,
                        .dim = stage.dim,
                        .num_heads = stage.num_heads,
                        .window = global ? 0 : before.window,
                        .mlp_hidden = stage.mlp_hidden,
                        .pools = stage.pools && i == 0});
    }
  }
  for (const int64_t global : config.global_blocks) {
    if (global < 0 || global >= std::ssize(blocks))
      throw Error(where, str("global blocks from 0 to ", blocks.size() - 1), str(global));
  }
  return blocks;
}

}  // namespace vitrail::models
