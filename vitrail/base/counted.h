// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "vitrail/base/error.h"

namespace vitrail {

// "1 image", "2 images".
template <class Count>
std::string counted(Count count, const std::string& noun) {
  return str(count, " ", noun, count == 1 ? "" : "s");
}

}  // namespace vitrail
