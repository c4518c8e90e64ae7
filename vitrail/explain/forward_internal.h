// SPDX-License-Identifier: Apache-2.0
#pragma once
// The values of one forward pass that the learning page shows or computes with.
#include <map>
#include <string>
#include <vector>

#include "vitrail/analysis/token_statistics.h"
#include "vitrail/models/vision_transformer.h"

namespace vitrail::explain {

struct Forward {
  std::map<std::string, Tensor> values;  // by the names of a trace; attention weights and what follows are not kept
  std::vector<std::vector<analysis::HeadStatistics>> heads;  // [block][head]

  const Tensor& at(const std::string& name) const;  // throws Error for the name of no value
  bool has(const std::string& name) const { return values.contains(name); }
};

// images [1, C, H, W].  The model is in eval mode, in f32.
Forward run_forward(const models::VisionTransformer& model, const Tensor& images);

// "blocks.3.attn.q"
std::string in_block(int64_t block, const char* name);
// The tokens that enter a block: "embedded", or those of the block before.  norm_pre is applied before the first.
std::string input_of(int64_t block);

}  // namespace vitrail::explain
