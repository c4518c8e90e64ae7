// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tokens of features by the names of the command line's options.
#include <string>

#include "vitrail/infer/session.h"

namespace vitrail::pipeline {

// pooled, cls, patch (their grid) or all.  Throws Error for another name.
infer::Tokens tokens_from_name(const std::string& name);
std::string token_name(infer::Tokens tokens);

}  // namespace vitrail::pipeline
