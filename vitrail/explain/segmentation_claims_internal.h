// SPDX-License-Identifier: Apache-2.0
#pragma once
// Facts of a pass through Segment Anything, as claims_internal.h.
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "vitrail/models/sam/sam.h"

namespace vitrail::explain {

struct SegmentationContext {
  const models::Sam& sam;
  const std::map<std::string, Tensor>& values;  // the trace's, with low_res_masks
  int64_t prompt_tokens = 0;
};

struct SegmentationClaim {
  const char* id;
  nlohmann::ordered_json (*measure)(const SegmentationContext& context);
};
const std::vector<SegmentationClaim>& segmentation_claims();

}  // namespace vitrail::explain
