// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace vitrail {

// The processor's name as the operating system has it: "AMD EPYC 7763 64-Core Processor"; "unknown processor" if it has
// none.
std::string processor_name();

}  // namespace vitrail
