// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where numbers stopped being numbers.
#include <string>
#include <vector>

#include "vitrail/models/vision_transformer.h"
#include "vitrail/optim/parameter_groups.h"

namespace vitrail::train {

// Runs the batch once more, looking at every step of every layer, and names the first result that holds a NaN or an
// infinity, with its least and greatest finite value: "blocks.3.attn.scores [64, 12, 65, 65] (finite part −3e38 …
// 3e38)".  Weights come before: a parameter that is not finite is named instead.  Call it under the RandomScope of the
// step.
std::string first_non_finite_layer(const models::VisionTransformer& model, const Tensor& images);

// The parameter nearest to the loss whose gradient is not finite: the first that a backward pass came to.
std::string non_finite_gradient(const std::vector<optim::Parameter>& parameters);

}  // namespace vitrail::train
