// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/env_internal.h"

#include <cstdlib>

namespace vitrail {

std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

}  // namespace vitrail
