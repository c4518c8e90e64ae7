// SPDX-License-Identifier: Apache-2.0
#pragma once
// The limit of a call, where its work is done.
#include "vitrail/base/call_limit.h"

namespace vitrail {

// Throws Cancelled if the limit of this thread is reached.
void check_call_limit();

const CallLimit* call_limit();  // the limit of this thread; null: none

// While it lives, this thread has the limit of the thread that it works for.
class BorrowedCallLimit {
 public:
  explicit BorrowedCallLimit(const CallLimit* limit);
  ~BorrowedCallLimit();
  BorrowedCallLimit(const BorrowedCallLimit&) = delete;
  BorrowedCallLimit& operator=(const BorrowedCallLimit&) = delete;

 private:
  const CallLimit* before_;
};

}  // namespace vitrail
