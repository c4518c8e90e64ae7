// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>

#include <initializer_list>

#include "vitrail/base/signal_block_internal.h"

namespace vitrail {

SignalBlock::SignalBlock() {
  sigset_t blocked;
  sigfillset(&blocked);
  for (const int fault : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP}) sigdelset(&blocked, fault);
  pthread_sigmask(SIG_BLOCK, &blocked, &before_);
}

SignalBlock::~SignalBlock() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace vitrail
