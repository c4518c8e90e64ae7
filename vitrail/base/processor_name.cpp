// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/processor_name_internal.h"

#include <fstream>

namespace vitrail {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != line.npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

}  // namespace vitrail
