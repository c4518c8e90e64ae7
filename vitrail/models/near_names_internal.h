// SPDX-License-Identifier: Apache-2.0
#pragma once
// Names that a misspelled name may have meant.
#include <string>
#include <vector>

namespace vitrail::models {

// The number of inserted, removed and replaced characters between two names.
size_t edit_distance(const std::string& a, const std::string& b);

// At most three candidates that differ from `name` in few characters, the nearest first.  Case does not count.
std::vector<std::string> near_names(const std::string& name, const std::vector<std::string>& candidates);

}  // namespace vitrail::models
