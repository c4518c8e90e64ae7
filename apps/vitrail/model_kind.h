// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a model is for, by its weights.
#include <string>

namespace vitrail::app {

// Whether it is a Segment Anything model.  False for weights that cannot be read: loading them reports why.
bool is_segmentation_model(const std::string& path);

}  // namespace vitrail::app
