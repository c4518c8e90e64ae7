// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/callbacks.h"

#include <mutex>
#include <utility>

#include "vitrail/base/warning_pause_internal.h"

namespace vitrail {
namespace {

std::mutex mutex;  // guards installed_callback
WarningCallback installed_callback;
thread_local int pauses = 0;

}  // namespace

WarningPause::WarningPause() { ++pauses; }
WarningPause::~WarningPause() { --pauses; }

void warn(const std::string& message) {
  if (pauses > 0) return;
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
