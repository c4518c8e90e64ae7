// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/base/fields.h"
#include "vitrail/infer/session.h"

namespace vitrail::pipeline {

// The features that the command line and the server give; "patch" stands for the grid of patches.
void describe_features(Fields& fields, infer::FeatureOptions& options);

}  // namespace vitrail::pipeline
