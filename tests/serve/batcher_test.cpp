// SPDX-License-Identifier: Apache-2.0
// Batches over clients, without a server.  A task that waits holds the computing thread, so that what is added after it
// waits together.
#include "vitrail/serve/batcher_internal.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <future>

#include "tests/serve/serve_fixture.h"
#include "tests/support/golden.h"
#include "vitrail/serve/worker_pool_internal.h"
#include "vitrail/tasks/images/image_model.h"

namespace vitrail::serve {
namespace {

using namespace std::chrono_literals;

class ServeBatcher : public ::testing::Test {
 protected:
  static ModelPointer model() {
    static const auto served =
        std::make_shared<const ServedModel>(ModelSource{"small", testing::small_model()}, ModelOptions{.threads = 1});
    return served;
  }

  Batcher::Options options(int64_t batch, double delay_ms = 0) {
    return {.batch = batch, .delay_ms = delay_ms, .on_batch = [this](const std::string& name, size_t images, double) {
              EXPECT_EQ(name, "small");
              sizes.push_back(images);
            }};
  }

  // Holds the computing thread until the destructor.
  struct Hold {
    explicit Hold(Batcher& batcher) {
      const auto entered = std::make_shared<std::promise<void>>();
      batcher.run([entered, left = leave.get_future().share()] {
        entered->set_value();
        left.wait();
      });
      entered->get_future().wait();
    }
    ~Hold() { leave.set_value(); }
    std::promise<void> leave;
  };

  // An image whose result becomes the future's.
  std::future<BatchResult> add(Batcher& batcher, float value, const infer::Request& request = {}, int64_t side = 32,
                               bool departed = false, uint64_t client = 0) {
    auto promise = std::make_shared<std::promise<BatchResult>>();
    BatchItem item{.model = model(),
                   .client = client,
                   .request = request,
                   .input = Tensor::full({3, side, side}, value),
                   .departed = [=] { return departed; },
                   .done = [=](BatchResult result) { promise->set_value(std::move(result)); }};
    batcher.add(std::move(item));
    return promise->get_future();
  }

  static Tensor logits_of(float value) {
    return tasks::as_model<tasks::ImageModel>(model()->loaded())
        .images()
        .session()
        .logits(Tensor::full({1, 3, 32, 32}, value))
        .select(0, 0);
  }

  std::vector<size_t> sizes;  // written by the computing thread
};

TEST_F(ServeBatcher, ABatchHasAtMostSoManyImagesAndEachItsOwnResult) {
  std::vector<std::future<BatchResult>> futures;
  Batcher batcher(options(3));
  {
    const Hold hold(batcher);
    for (int i = 0; i < 7; ++i) futures.push_back(add(batcher, static_cast<float>(i)));
    EXPECT_EQ(batcher.waiting_images(), (std::map<std::string, size_t>{{"small", 7}}));
  }
  for (int i = 0; i < 7; ++i) {
    const BatchResult result = futures[static_cast<size_t>(i)].get();
    EXPECT_EQ(result.failure.error, "");
    ASSERT_EQ(result.results.size(), 1U);
    EXPECT_TRUE(testing::close(result.results[0], logits_of(static_cast<float>(i)), 1e-5)) << i;
    EXPECT_GT(result.model_seconds, 0);
    EXPECT_GE(result.queue_seconds, 0);
  }
  batcher.stop();
  EXPECT_EQ(sizes, (std::vector<size_t>{3, 3, 1}));
  EXPECT_TRUE(batcher.waiting_images().empty());
}

TEST_F(ServeBatcher, OtherRequestsAreOtherBatchesAndThoseWithoutClientsAreLeftOut) {
  std::vector<std::future<BatchResult>> futures;
  Batcher batcher(options(8));
  const infer::Request features{.output = infer::Output::features};
  infer::Request layer = features, plain = features, tokens = features;
  layer.features.layers = {0};
  plain.features.final_norm = false;
  tokens.features.tokens = infer::Tokens::all;
  const infer::Request attention{.output = infer::Output::attention},
      all{.output = infer::Output::attention, .all_layers = true};
  {
    const Hold hold(batcher);
    for (int i = 0; i < 2; ++i) {
      for (const infer::Request& request : {infer::Request{}, features, layer, plain, tokens, attention, all}) {
        futures.push_back(add(batcher, 1, request));
        add(batcher, 1, request, 32, true);
      }
    }
  }
  for (std::future<BatchResult>& future : futures) EXPECT_EQ(future.get().failure.error, "");
  batcher.stop();
  EXPECT_EQ(sizes, std::vector<size_t>(7, 2));
}

// Each task alone has as many bytes in memory as may wait.
TEST_F(ServeBatcher, ATaskThatRunsNoLongerCountsAsWaiting) {
  Batcher batcher(options(8));
  std::atomic<int> ran = 0;
  for (int i = 0; i < 4; ++i) {
    auto added =
        std::async(std::launch::async, [&] { batcher.run([&] { ++ran; }, {.bytes = Batcher::kMaxWaitingBytes}); });
    if (added.wait_for(20s) == std::future_status::ready) continue;
    ADD_FAILURE() << "the task of call " << i << " waits for memory that is free";
    batcher.stop();
  }
  testing::wait_until([&] { return ran == 4; });
}

TEST_F(ServeBatcher, ATaskWaitsWhileMemoryIsFull) {
  Batcher batcher(options(8));
  std::future<void> added;
  std::atomic<bool> ran = false;
  {
    const Hold hold(batcher);
    batcher.run([] {}, {.bytes = Batcher::kMaxWaitingBytes - 100});
    batcher.run([] {}, {.bytes = 100});
    batcher.run([] {});
    added = std::async(std::launch::async, [&] { batcher.run([&] { ran = true; }, {.bytes = 1}); });
    EXPECT_EQ(added.wait_for(100ms), std::future_status::timeout);
    EXPECT_TRUE(batcher.waiting_images().empty()) << "tasks are no images";
  }
  added.get();
  testing::wait_until([&] { return ran.load(); });
}

// The delay ends as soon as the batch is complete.
TEST_F(ServeBatcher, ACompleteBatchDoesNotWaitForTheDelay) {
  Batcher batcher(options(2, 60'000));
  std::future<BatchResult> first = add(batcher, 1), second = add(batcher, 2);
  EXPECT_EQ(first.wait_for(20s), std::future_status::ready);
  EXPECT_EQ(second.wait_for(20s), std::future_status::ready);
  std::future<BatchResult> third = add(batcher, 3);  // alone: it waits
  EXPECT_EQ(third.wait_for(100ms), std::future_status::timeout);
  std::promise<void> ran;
  batcher.run([&] { ran.set_value(); });  // a task ends the delay
  EXPECT_EQ(third.wait_for(20s), std::future_status::ready);
  EXPECT_EQ(ran.get_future().wait_for(20s), std::future_status::ready);
  batcher.stop();
  EXPECT_EQ(sizes, (std::vector<size_t>{2, 1}));
}

TEST_F(ServeBatcher, ALongTaskLetsShortOnesAndABatchIn) {
  Batcher batcher(options(8));
  std::atomic<int> short_tasks = 0, long_tasks = 0;
  std::promise<bool> first, after_stop;
  std::promise<void> go_on, stopped;
  std::future<BatchResult> image;
  batcher.run(
      [&] {
        go_on.get_future().wait();
        first.set_value(batcher.run_waiting());
        stopped.get_future().wait();
        after_stop.set_value(batcher.run_waiting());
      },
      {.is_long = true});
  batcher.run([&] { ++long_tasks; }, {.is_long = true});
  batcher.run([&] { ++short_tasks; });
  batcher.run([&] { ++short_tasks; });
  image = add(batcher, 1);
  go_on.set_value();
  EXPECT_TRUE(first.get_future().get());
  EXPECT_EQ(short_tasks, 1);
  EXPECT_EQ(long_tasks, 0);
  EXPECT_EQ(image.wait_for(0s), std::future_status::ready);
  const std::future<BatchResult> dropped = add(batcher, 2);
  std::thread stop([&] { batcher.stop(); });
  testing::wait_until([&] { return batcher.waiting_images().empty(); });
  stopped.set_value();
  EXPECT_FALSE(after_stop.get_future().get());
  stop.join();
  EXPECT_EQ(long_tasks, 0);
}

TEST_F(ServeBatcher, AnInputThatTheModelCannotTakeIsItsError) {
  Batcher batcher(options(8));
  const BatchResult result = add(batcher, 1, {}, 20).get();
  EXPECT_EQ(result.failure.status, 0) << "of the client";
  EXPECT_NE(result.failure.error, "");
  EXPECT_TRUE(result.results.empty());
  EXPECT_EQ(add(batcher, 1).get().failure.error, "");
}

// Images of one kind run together in the order of their first one, whatever is between them.
TEST_F(ServeBatcher, TheKindOfTheOldestImageIsFirst) {
  const auto other_model =
      std::make_shared<const ServedModel>(ModelSource{"small", testing::small_model()}, ModelOptions{.threads = 1});
  const infer::Request first{.output = infer::Output::features, .features = {.layers = {0}}},
      second{.output = infer::Output::features, .features = {.layers = {1}}};
  std::vector<std::future<BatchResult>> futures;
  Batcher batcher(options(8));
  {
    const Hold hold(batcher);
    futures.push_back(add(batcher, 1, first));
    futures.push_back(add(batcher, 2));
    futures.push_back(add(batcher, 3, second));
    futures.push_back(add(batcher, 4, first));
    futures.push_back(add(batcher, 5, {}, 20));  // too small for the model
    futures.push_back(add(batcher, 6));
    futures.push_back(add(batcher, 7));
    auto promise = std::make_shared<std::promise<BatchResult>>();
    futures.push_back(promise->get_future());
    batcher.add({.model = other_model,
                 .request = {},
                 .input = Tensor::full({3, 32, 32}, 8),
                 .departed = [] { return false; },
                 .done = [=](BatchResult result) { promise->set_value(std::move(result)); }});
  }
  std::vector<bool> failed;
  for (std::future<BatchResult>& future : futures) failed.push_back(!future.get().failure.error.empty());
  EXPECT_EQ(failed, (std::vector<bool>{false, false, false, false, true, false, false, false}));
  batcher.stop();
  EXPECT_EQ(sizes, (std::vector<size_t>{2, 3, 1, 1, 1}));
}

TEST_F(ServeBatcher, ABatchWithoutClientsIsNotComputed) {
  Batcher batcher(options(2));
  std::future<BatchResult> alone;
  {
    const Hold hold(batcher);
    for (int i = 0; i < 2; ++i) add(batcher, 1, {}, 32, true);
    add(batcher, 1, {}, 32, true);
    alone = add(batcher, 2);
  }
  EXPECT_EQ(alone.get().failure.error, "");
  batcher.stop();
  EXPECT_EQ(sizes, std::vector<size_t>{1});
}

TEST_F(ServeBatcher, ClientsTakeTurns) {
  Batcher batcher(options(2));
  std::vector<std::future<BatchResult>> many;
  std::future<BatchResult> other;
  {
    const Hold hold(batcher);
    for (int i = 0; i < 6; ++i) many.push_back(add(batcher, 1, {}, 32, false, 1));
    other = add(batcher, 2, {}, 32, false, 2);
  }
  const double waited = other.get().queue_seconds;
  EXPECT_LE(waited, many.at(1).get().queue_seconds) << "in the first batch";
  for (size_t i = 2; i < many.size(); ++i) many[i].get();
  batcher.stop();
  EXPECT_EQ(sizes, (std::vector<size_t>{2, 2, 2, 1}));
}

TEST(WorkerPool, UrgentTasksPrecedeOthersAndStopDropsThem) {
  WorkerPool pool(1);
  std::promise<void> entered, leave, done;
  std::string order;
  pool.post({.run = [&] {
    entered.set_value();
    leave.get_future().wait();
  }});
  entered.get_future().wait();
  pool.post({.run = [&] { order += 'a'; }});
  pool.post({.run = [&] { order += 'b'; }});
  pool.post_urgent([&] { order += 'u'; });
  pool.post({.run = [&] { done.set_value(); }});
  leave.set_value();
  done.get_future().wait();
  EXPECT_EQ(order, "uab");
  pool.stop();
  pool.post({.run = [&] { order += 'x'; }});
  EXPECT_EQ(order, "uab");
}

TEST(WorkerPool, ClientsTakeTurns) {
  WorkerPool pool(1);
  std::promise<void> entered, leave, done;
  std::string order;
  pool.post({.run = [&] {
    entered.set_value();
    leave.get_future().wait();
  }});
  entered.get_future().wait();
  for (const auto& [name, client] : {std::pair('a', 1), {'A', 1}, {'x', 1}, {'b', 2}, {'B', 2}, {'c', 3}})
    pool.post({.run = [&order, name = name] { order += name; }, .client = static_cast<uint64_t>(client)});
  pool.post({.run = [&] { done.set_value(); }, .client = 1});
  leave.set_value();
  done.get_future().wait();
  EXPECT_EQ(order, "abcABx");
}

TEST(WorkerPool, HeavyTasksLeaveThreadsToOthers) {
  const auto niceness = [] { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())); };
  int of_light = 0, of_heavy = 0;
  WorkerPool pool(2);
  std::promise<void> leave, light;
  const std::shared_future<void> left = leave.get_future().share();
  std::atomic<int> heavy{0};
  for (int i = 0; i < 5; ++i) {
    pool.post({.run =
                   [&, left] {
                     if (++heavy == 1) of_heavy = niceness();
                     left.wait();
                   },
               .is_heavy = true});
  }
  pool.post({.run = [&] {
    of_light = niceness();
    light.set_value();
  }});
  light.get_future().wait();
  EXPECT_EQ(of_light, niceness());
  EXPECT_LE(heavy, 2);
  leave.set_value();
  while (heavy < 5) std::this_thread::yield();
  pool.stop();
  EXPECT_EQ(of_heavy, std::min(19, niceness() + 5)) << "they yield the processors";
}

}  // namespace
}  // namespace vitrail::serve
