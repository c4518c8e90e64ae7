// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "apps/vitrail/shell/common.h"

namespace vitrail::app {

// Throws CLI::ValidationError naming `model` ("Segment Anything") for options of architecture and preprocessing, which
// its files determine.
void refuse_model_options(const ModelOptions& options, const std::string& model);

}  // namespace vitrail::app
