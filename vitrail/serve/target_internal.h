// SPDX-License-Identifier: Apache-2.0
#pragma once
// The target of a request: a path and a query (RFC 3986).
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/tasks/request_options.h"

namespace vitrail::serve {

using tasks::Parameters;
using tasks::RequestOptions;

struct Target {
  std::vector<std::string> path;  // the segments, decoded: "/v1/classify" has two
  Parameters query;               // decoded; "&exif" has an empty value
};

// The absolute form "http://HOST/v1/classify" is the same target as "/v1/classify": a server ignores the host.  Throws
// HttpError 400 for other targets without a leading slash, a damaged escape and an escaped NUL.
Target parse_target(std::string_view given);

}  // namespace vitrail::serve
