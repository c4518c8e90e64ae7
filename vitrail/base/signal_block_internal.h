// SPDX-License-Identifier: Apache-2.0
#pragma once
// Keeps signal handlers off a thread while it runs code that they must not interrupt.
#include <csignal>

namespace vitrail {

// While it is alive, the calling thread and the threads that it creates receive no asynchronous signals.  They stay
// pending, or another thread of the process receives them.  Signals of faults, such as SIGSEGV and SIGBUS, arrive as
// before.
class SignalBlock {
 public:
  SignalBlock();
  ~SignalBlock();
  SignalBlock(const SignalBlock&) = delete;
  SignalBlock& operator=(const SignalBlock&) = delete;

 private:
  sigset_t before_;
};

}  // namespace vitrail
