// SPDX-License-Identifier: Apache-2.0
#pragma once
// What to say about a model that is not there.
#include <string>

namespace vitrail::models {

// For a path or name with nothing at it: recognises URLs, registered architectures and misspelled names.  For errors
// ("a URL: download it first").
std::string describe_missing_model(const std::string& given);

}  // namespace vitrail::models
