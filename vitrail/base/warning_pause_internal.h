// SPDX-License-Identifier: Apache-2.0
#pragma once
// Trying something whose warnings nobody needs.

namespace vitrail {

// Drops the warnings of this thread during its lifetime.
class WarningPause {
 public:
  WarningPause();
  ~WarningPause();
  WarningPause(const WarningPause&) = delete;
  WarningPause& operator=(const WarningPause&) = delete;
};

}  // namespace vitrail
