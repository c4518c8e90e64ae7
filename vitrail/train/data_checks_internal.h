// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checks of the data of a run before its work begins.
#include <string>
#include <vector>

namespace vitrail::train {

// Throws Error naming the first class whose name is not UTF-8: config.json could not be written at the end.
void check_class_names(const std::vector<std::string>& classes, const std::string& where);

}  // namespace vitrail::train
