// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/processor_name_internal.h"

#include <fstream>

namespace vitrail {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string arm;  // has numbers instead of a name
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (colon == line.npos) continue;
    if (line.starts_with("model name")) return line.substr(colon + 2);
    if (line.starts_with("CPU implementer") && arm.empty()) arm = "ARM, implementer " + line.substr(colon + 2);
    if (line.starts_with("CPU part")) return arm + ", part " + line.substr(colon + 2);
  }
  return "unknown processor";
}

}  // namespace vitrail
