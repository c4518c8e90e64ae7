// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace vitrail {

std::string utc_time();  // the present time: "2031-05-04 13:20:00 UTC"

}  // namespace vitrail
