// SPDX-License-Identifier: Apache-2.0
#pragma once
// The request for features of a model, by the names of the command line's options.
#include <string>
#include <vector>

#include "vitrail/pipeline/model.h"

namespace vitrail::pipeline {

struct FeatureOptions {
  std::string tokens = "pooled";    // pooled, cls, patch or all
  std::vector<int64_t> layers{-1};  // indices of blocks; several are computed in one pass
  bool final_norm = true;
};

// Throws Error for other names of tokens and for no layer.
infer::Request feature_request(const Model& model, const FeatureOptions& options);

}  // namespace vitrail::pipeline
