// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/serve/http_error.h"

namespace vitrail::serve {

constexpr int64_t kMaxResponseValues = int64_t{1} << 24;  // 300 MB of JSON

// Throws HttpError 413 for a request whose results would exhaust memory: `count` times `values` above `max`.
inline void check_response_size(int64_t count, int64_t values, int64_t max = kMaxResponseValues) {
  if (values > 0 && count > max / values)
    throw HttpError(413, str("the results have more than ", max, " values: send fewer images, or ask for less"));
}

}  // namespace vitrail::serve
