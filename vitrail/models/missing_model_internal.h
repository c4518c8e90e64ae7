// SPDX-License-Identifier: Apache-2.0
#pragma once
// What to say about a model that is not there.
#include <string>

namespace vitrail::models {

// For a --config that is neither a file nor a registered architecture: throws Error with the name's family, if it is
// known and not supported, or with similar names.  Returns for a path.
void refuse_unknown_name(const std::string& given);

// For a path or name with nothing at it: recognises URLs, registered architectures, families that are not
// supported and misspelled names.  For errors
// ("a URL: download it first").
std::string describe_missing_model(const std::string& given);

}  // namespace vitrail::models
