// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ending calls of the library early: a deadline, or a flag of the program.
#include <chrono>
#include <functional>
#include <stdexcept>

namespace vitrail {

// Thrown by a call that its limit has ended.  It is no Error: the input is not to blame.
class Cancelled : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// While it lives, calls of its thread that run a model throw Cancelled once the limit is reached.  That is looked at
// before each layer and before each image is preprocessed: a call goes on for the time of one of them.  Opening a
// model, decoding and training go on to their end.  Limits of one thread all hold, and end in the reverse order.
class CallLimit {
 public:
  explicit CallLimit(std::chrono::steady_clock::time_point deadline);
  // Whether to end the call.  It is called from several threads at once.
  explicit CallLimit(std::function<bool()> cancelled);
  ~CallLimit();
  CallLimit(const CallLimit&) = delete;
  CallLimit& operator=(const CallLimit&) = delete;

 private:
  friend void check_call_limit();
  std::function<void()> check_;  // throws Cancelled
  const CallLimit* before_;
};

}  // namespace vitrail
