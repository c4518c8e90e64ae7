// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/call_limit_internal.h"

#include <utility>

namespace vitrail {
namespace {

thread_local const CallLimit* current_limit = nullptr;

}  // namespace

CallLimit::CallLimit(std::chrono::steady_clock::time_point deadline)
    : check_([deadline] {
        if (std::chrono::steady_clock::now() >= deadline) throw Cancelled("the deadline of the call has passed");
      }),
      before_(std::exchange(current_limit, this)) {}

CallLimit::CallLimit(std::function<bool()> cancelled)
    : check_([cancelled = std::move(cancelled)] {
        if (cancelled()) throw Cancelled("the call was cancelled");
      }),
      before_(std::exchange(current_limit, this)) {}

CallLimit::~CallLimit() { current_limit = before_; }

void check_call_limit() {
  for (const CallLimit* limit = current_limit; limit; limit = limit->before_) limit->check_();
}

const CallLimit* call_limit() { return current_limit; }

BorrowedCallLimit::BorrowedCallLimit(const CallLimit* limit) : before_(std::exchange(current_limit, limit)) {}
BorrowedCallLimit::~BorrowedCallLimit() { current_limit = before_; }

}  // namespace vitrail
