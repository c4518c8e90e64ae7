// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <csignal>

#include "vitrail/base/signal_block_internal.h"

namespace vitrail {
namespace {

bool is_blocked(int signal) {
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  return sigismember(&blocked, signal) == 1;
}

// A thread that starts meanwhile leaves signals to the host program's threads.
TEST(SignalBlock, BlocksAllSignalsButFaults) {
  const SignalBlock block;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGUSR1, SIGALRM, SIGPROF})
    EXPECT_TRUE(is_blocked(signal));
  for (const int fault : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP}) EXPECT_FALSE(is_blocked(fault));
}

TEST(SignalBlock, RestoresWhatWasBlockedBefore) {
  sigset_t own, before;
  sigemptyset(&own);
  sigaddset(&own, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &own, &before);
  { const SignalBlock block; }
  EXPECT_TRUE(is_blocked(SIGUSR2));
  EXPECT_FALSE(is_blocked(SIGTERM));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(SignalBlock, EndsWithItsLifetime) {
  EXPECT_FALSE(is_blocked(SIGTERM));
  {
    const SignalBlock outer;
    { const SignalBlock inner; }
    EXPECT_TRUE(is_blocked(SIGTERM));
  }
  EXPECT_FALSE(is_blocked(SIGTERM));
}

}  // namespace
}  // namespace vitrail
