// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the library speaks to the program around it: it never prints.
#include <cstdint>
#include <functional>
#include <string>

namespace vitrail {

using WarningCallback = std::function<void(const std::string& message)>;
using ProgressCallback = std::function<void(int64_t done, int64_t total)>;  // total < 0: not known

// Passes a warning to the process's callback; without one it is dropped.
void warn(const std::string& message);

// Installs the process's warning callback (thread-safe) and returns the one before.
WarningCallback set_warning_callback(WarningCallback callback);

}  // namespace vitrail
