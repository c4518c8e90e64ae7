// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/callbacks.h"

#include <mutex>
#include <utility>

namespace vitrail {
namespace {

std::mutex mutex;  // guards installed_callback
WarningCallback installed_callback;

}  // namespace

void warn(const std::string& message) {
  WarningCallback callback;
  {
    const std::lock_guard lock(mutex);
    callback = installed_callback;
  }  // called without the lock: the callback may itself warn or install another callback
  if (callback) callback(message);
}

WarningCallback set_warning_callback(WarningCallback callback) {
  const std::lock_guard lock(mutex);
  return std::exchange(installed_callback, std::move(callback));
}

}  // namespace vitrail
