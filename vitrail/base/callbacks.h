// SPDX-License-Identifier: Apache-2.0
#pragma once
// Callbacks through which the library reports warnings and progress to the calling program.  The library never prints.
#include <cstdint>
#include <functional>
#include <string>

namespace vitrail {

using WarningCallback = std::function<void(const std::string& message)>;
using ProgressCallback = std::function<void(int64_t done, int64_t total)>;  // total < 0: unknown

// Passes a warning to the installed callback.  Without a callback the warning is dropped.  Thread-safe.
void warn(const std::string& message);

// Installs the process-wide warning callback and returns the previous one.  Thread-safe.
WarningCallback set_warning_callback(WarningCallback callback);

}  // namespace vitrail
