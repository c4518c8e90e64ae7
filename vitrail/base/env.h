// SPDX-License-Identifier: Apache-2.0
#pragma once
// The environment variables that the library reads.
#include <optional>
#include <string>

namespace vitrail {

// The value of a variable; nothing when it is unset or empty.
std::optional<std::string> environment(const char* name);

}  // namespace vitrail
