// SPDX-License-Identifier: Apache-2.0
#pragma once
// Diagnosis of a non-finite loss or gradient: finds the first tensor with a NaN or an infinity.
#include <string>
#include <vector>

#include "vitrail/models/vision_transformer.h"
#include "vitrail/optim/parameter_groups.h"

namespace vitrail::train {

// Repeats the forward pass of a batch and describes the first tensor that is not finite, with the range of its finite
// values: "the output of blocks.3.attn.scores [64, 12, 65, 65] (finite values −3e38 … 3e38)".  Checks the images and
// the weights before the outputs.  Call it under the RandomScope of the step, so that dropout is the same.
std::string first_non_finite_layer(const models::VisionTransformer& model, const Tensor& images);

// Describes a tensor that has a NaN or an infinity, with the range of its finite values; empty if it has none.
std::string non_finite_values(const std::string& name, const Tensor& tensor);

// Describes the non-finite gradient closest to the loss, which is the first that the backward pass computed.
std::string non_finite_gradient(const std::vector<optim::Parameter>& parameters);

}  // namespace vitrail::train
