// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/failure_internal.h"

#include <new>

#include "vitrail/base/callbacks.h"
#include "vitrail/serve/http_error.h"
#include "vitrail/tasks/task.h"

namespace vitrail::serve {

Failure failure_of(const std::exception& error, const std::string& where) {
  if (const auto* http = dynamic_cast<const HttpError*>(&error)) return {http->what(), http->status()};
  if (dynamic_cast<const tasks::TooLarge*>(&error) != nullptr) return {error.what(), 413};
  if (dynamic_cast<const Error*>(&error) != nullptr) return {error.what(), 0};
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return {"out of memory", 503};
  warn(str("serve: ", where, ": ", error.what()));
  return {"internal error", 500};
}

}  // namespace vitrail::serve
