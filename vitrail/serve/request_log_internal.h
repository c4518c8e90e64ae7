// SPDX-License-Identifier: Apache-2.0
#pragma once
// The line of the log for a request.
#include <string>

#include "vitrail/serve/http_internal.h"
#include "vitrail/serve/model_statistics_internal.h"

namespace vitrail::serve {

struct LogEntry {
  std::string route, method, model, client, request_id, traceparent;  // empty: unknown
  std::string error = {};  // why it failed, also what its client does not see
  int status = 0;
  size_t request_bytes = 0, response_bytes = 0;
  RequestTimes times = {};
};

// What the head of a request says: its method, client, X-Request-Id or an id of its own, and W3C's trace.
LogEntry log_entry_of(const HttpRequest& head, const std::string& route);

// A line of JSON, without its end; it begins with the time, in UTC.
std::string log_line(const LogEntry& entry);

}  // namespace vitrail::serve
