// SPDX-License-Identifier: Apache-2.0
#pragma once
// Notes: what a command understood its inputs to be.
#include <string>

#include "apps/vitrail/common.h"

namespace vitrail::app {

// Prints "vitrail: …" on standard error, unless quiet.
void print_note(const std::string& message, const GlobalOptions& global);

}  // namespace vitrail::app
