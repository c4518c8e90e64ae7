// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/callbacks.h"

#include <mutex>
#include <utility>

namespace vitrail {
namespace {

std::mutex mutex;
WarningCallback current;

}  // namespace

void warn(const std::string& message) {
  WarningCallback callback;
  {
    const std::lock_guard lock(mutex);
    callback = current;
  }
  if (callback) callback(message);
}

WarningCallback set_warning_callback(WarningCallback callback) {
  const std::lock_guard lock(mutex);
  return std::exchange(current, std::move(callback));
}

}  // namespace vitrail
