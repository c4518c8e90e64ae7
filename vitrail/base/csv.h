// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace vitrail {

// A field of a CSV row, quoted if necessary (RFC 4180).
std::string csv_field(const std::string& text);

}  // namespace vitrail
