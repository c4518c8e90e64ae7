// SPDX-License-Identifier: Apache-2.0
#pragma once
// Access to environment variables.
#include <optional>
#include <string>

namespace vitrail {

// Returns the value of a variable, or nullopt if it is unset or empty.
std::optional<std::string> environment(const char* name);

}  // namespace vitrail
