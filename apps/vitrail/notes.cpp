// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/notes.h"

#include <fmt/core.h>

#include <cstdio>

namespace vitrail::app {

void print_note(const std::string& message, const GlobalOptions& global) {
  if (!global.quiet) fmt::print(stderr, "vitrail: {}\n", message);
}

}  // namespace vitrail::app
