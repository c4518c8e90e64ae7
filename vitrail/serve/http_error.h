// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "vitrail/base/error.h"

namespace vitrail::serve {

// An error of a request, with the status of its response.  Other Errors of a request give 400.
class HttpError : public Error {
 public:
  HttpError(int status, const std::string& message) : Error(message), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

}  // namespace vitrail::serve
