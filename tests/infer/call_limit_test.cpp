// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/call_limit.h"

#include <gtest/gtest.h>

#include <atomic>

#include "tests/support/models.h"
#include "vitrail/infer/session.h"
#include "vitrail/models/load.h"

namespace vitrail::infer {
namespace {

using std::chrono::steady_clock;

Session session_of(int threads) {
  return Session(models::build_model(models::open_model(testing::model_fixture("timm_token"))), {.threads = threads});
}

// Each of several threads computes images alone, within the limit of the caller.
TEST(CallLimit, HoldsOnTheThreadsThatWorkForTheCall) {
  const Tensor images = Tensor::zeros({8, 3, 32, 32});
  for (const int threads : {1, 2}) {
    const Session session = session_of(threads);
    std::atomic<int> looks = 0;
    {
      const CallLimit limit([&] { return ++looks < 0; });
      session.run(images);
    }
    const int all = looks;
    EXPECT_GE(all, 8) << threads;
    session.run(images);
    EXPECT_EQ(looks, all) << "the limit has ended";
    const CallLimit limit([&] { return --looks == 0; });
    EXPECT_THROW(session.run(images), Cancelled) << threads << " threads, at the last step";
  }
}

TEST(CallLimit, AllLimitsOfAThreadHold) {
  const Tensor images = Tensor::zeros({1, 3, 32, 32});
  const Session session = session_of(1);
  const CallLimit far(steady_clock::now() + std::chrono::hours(1));
  EXPECT_NO_THROW(session.run(images));
  {
    const CallLimit past(steady_clock::now());
    EXPECT_THROW(session.run(images), Cancelled);
    const CallLimit never([] { return false; });
    EXPECT_THROW(session.run(images), Cancelled);
  }
  EXPECT_NO_THROW(session.run(images));
}

}  // namespace
}  // namespace vitrail::infer
