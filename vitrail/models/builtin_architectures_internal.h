// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/base/embedded_file_internal.h"

namespace vitrail::models {

// The named architectures: the files of architectures/.  Each is an array of {"name", "credit", "model_args"}, and
// "timm": false if timm lacks the name.
std::span<const EmbeddedFile> builtin_architectures();

}  // namespace vitrail::models
