// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/base/embedded_json_internal.h"

namespace vitrail::models {

// The named architectures: the files of architectures/.  Each is an array of {"name", "credit", "model_args"}, and
// "timm": false if timm lacks the name.
std::span<const EmbeddedJson> builtin_architectures();

}  // namespace vitrail::models
