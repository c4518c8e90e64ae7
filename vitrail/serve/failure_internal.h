// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <exception>
#include <string>

namespace vitrail::serve {

// Why a request, or an image of it, has no result.
struct Failure {
  std::string error = {};
  int status = 0;  // 0: what the client sent is at fault
};

// The status of an HttpError, 413 for tasks::TooLarge, 0 for another Error, 503 without memory, else 500: then a
// warning with the name of the route or model has the message, which clients must not see.
Failure failure_of(const std::exception& error, const std::string& where);

}  // namespace vitrail::serve
