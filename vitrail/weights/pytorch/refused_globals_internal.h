// SPDX-License-Identifier: Apache-2.0
#pragma once
// Python globals that run code, open files or reach other globals.  A checkpoint that names one is hostile or broken.
#include <string_view>

namespace vitrail::weights {

// Whether a pickle that names this global is refused.  `name` may be dotted, as protocol 4 allows ("os.system").
bool is_refused_global(std::string_view module, std::string_view name);

}  // namespace vitrail::weights
