// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/models/load.h"

namespace vitrail::models {

// A dual model (CLIP, SigLIP) with new values, in the form of the file that it was opened from, which the libraries
// that read the file can read too.
struct DualValues {
  std::function<Tensor(const std::string&)> image{}, text{};  // the towers' tensors by their native names
  double logit_scale = 0, logit_bias = 0;                     // TextTower
};

// All tensors of the opened checkpoint, f32.  What belongs to neither tower keeps its value.  Throws Error for a file
// without a text tower, and as weights::source_tensors().
std::vector<std::pair<std::string, Tensor>> dual_tensors(const OpenedModel& opened, const DualValues& values);

}  // namespace vitrail::models
