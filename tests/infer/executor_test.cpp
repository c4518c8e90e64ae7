// SPDX-License-Identifier: Apache-2.0
// How an executor divides a batch, and which programs and plans it keeps.
#include "vitrail/infer/executor_internal.h"

#include <gtest/gtest.h>
#include <atomic>
#include <memory>
#include <utility>

#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/base/parallel.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/recorder.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::infer {
namespace {

using Inputs = std::vector<Tensor>;

// Doubles its input: a program with one buffer.
Executor::Function doubling(int* recorded = nullptr) {
  return [recorded](const Variant&, const Inputs& in) -> Inputs {
    if (recorded) ++*recorded;
    return {ops::add(in[0], in[0])};
  };
}

std::vector<TensorSpec> batch_of(int64_t batch, int64_t floats) { return {{DType::f32, Shape{batch, floats}}}; }

struct Part {
  int64_t first, count;
  bool operator==(const Part&) const = default;
};
std::vector<Part> parts_of(const std::vector<BatchPart>& parts) {
  std::vector<Part> result;
  for (const BatchPart& part : parts) result.push_back({part.first, part.count});
  return result;
}

// A sample of half a mebibyte: four of them fit a core's share of the cache.
TEST(Executor, EachThreadHasPartsThatFitItsCacheAndAllShareTheRemainder) {
  constexpr int64_t kFloats = 131'072;
  struct Case {
    int threads;
    int64_t batch;
    std::vector<Part> parallel, sequential;
    int64_t largest;
  };
  for (const Case& each :
       {Case{1, 1, {{0, 1}}, {}, 1}, Case{1, 4, {{0, 4}}, {}, 4}, Case{1, 9, {{0, 3}, {3, 3}, {6, 3}}, {}, 3},
        Case{1, 5, {{0, 2}, {2, 3}}, {}, 3}, Case{2, 1, {}, {{0, 1}}, 1}, Case{2, 2, {{0, 1}, {1, 1}}, {}, 1},
        Case{2, 11, {{0, 2}, {2, 3}, {5, 2}, {7, 3}}, {{10, 1}}, 3}, Case{3, 5, {{0, 1}, {1, 1}, {2, 1}}, {{3, 2}}, 1},
        Case{4, 3, {}, {{0, 3}}, 3}, Case{20, 19, {}, {{0, 19}}, 19}}) {
    const Executor executor(doubling(), PackedWeights(), {.threads = each.threads, .split_batch = true});
    const auto plan = executor.plan({}, batch_of(each.batch, kFloats));
    EXPECT_EQ(parts_of(plan->parallel), each.parallel) << each.batch << " on " << each.threads;
    EXPECT_EQ(parts_of(plan->sequential), each.sequential) << each.batch << " on " << each.threads;
    EXPECT_EQ(plan->batch, each.batch);
    EXPECT_EQ(plan->largest_part().count, each.largest);
    EXPECT_EQ(
        plan->workspace_bytes,
        static_cast<size_t>(std::max(each.largest, each.sequential.empty() ? int64_t{0} : each.sequential[0].count) *
                            kFloats * 4));
    ASSERT_EQ(plan->outputs.size(), 1u);
    EXPECT_EQ(plan->outputs[0].shape, (Shape{each.batch, kFloats}));
  }
}

// A sample larger than the cache is a part of its own.
TEST(Executor, APartHasAtLeastOneSample) {
  const Executor executor(doubling(), PackedWeights(), {.threads = 1, .split_batch = true});
  const auto plan = executor.plan({}, batch_of(3, 1'000'000));
  EXPECT_EQ(parts_of(plan->parallel), (std::vector<Part>{{0, 1}, {1, 1}, {2, 1}}));
}

TEST(Executor, AnUndividedCallIsOnePart) {
  const Executor executor(doubling(), PackedWeights(), {.threads = 2});
  const auto plan = executor.plan({}, batch_of(9, 500'000));
  EXPECT_TRUE(plan->parallel.empty());
  EXPECT_EQ(parts_of(plan->sequential), (std::vector<Part>{{0, 1}}));
  EXPECT_EQ(plan->batch, 1);
  EXPECT_EQ(plan->outputs[0].shape, (Shape{9, 500'000}));
  EXPECT_EQ(plan->workspace_bytes, 9u * 500'000u * 4u);
}

TEST(Executor, RunsOnAsManyThreadsAsItMayUseUnlessTold) {
  EXPECT_EQ(Executor(doubling(), PackedWeights(), {}).threads(), available_threads());
  EXPECT_EQ(Executor(doubling(), PackedWeights(), {.threads = 3}).threads(), 3);
}

// Samples of several inputs of other sizes reach their part, and results their place.
TEST(Executor, PartsReadTheirSamplesOfEachInput) {
  for (const int threads : {1, 2, 3}) {
    const Executor executor(
        [](const Variant&, const Inputs& in) -> Inputs {
          return {ops::add(in[0], in[1]), ops::mul(in[1], in[1])};
        },
        PackedWeights(), {.threads = threads, .split_batch = true});
    for (int64_t batch = 1; batch <= 7; ++batch) {
      const Inputs inputs{Tensor::randn({batch, 3, 5}, 1), Tensor::randn({batch, 3, 1}, 2)};
      const auto plan =
          executor.plan({}, std::vector<TensorSpec>{{DType::f32, inputs[0].shape()}, {DType::f32, inputs[1].shape()}});
      const Inputs got = executor.run(*plan, inputs);
      ASSERT_EQ(got.size(), 2u);
      EXPECT_TRUE(testing::close(got[0], ops::add(inputs[0], inputs[1]), 0)) << batch << " on " << threads;
      EXPECT_TRUE(testing::close(got[1], ops::mul(inputs[1], inputs[1]), 0)) << batch << " on " << threads;
    }
  }
}

// The 32 programs and 16 plans that were used last are kept.
TEST(Executor, KeepsTheProgramsAndPlansThatWereUsedLast) {
  int recorded = 0;
  const Executor executor(doubling(&recorded), PackedWeights(), {.threads = 1});
  const auto use = [&](int64_t floats) { return executor.plan({}, batch_of(1, floats)); };
  const auto first = use(1);
  for (int64_t n = 2; n <= 16; ++n) use(n);
  EXPECT_EQ(use(1), first);
  for (int64_t n = 17; n <= 31; ++n) use(n);
  EXPECT_EQ(use(1), first) << "15 others since";
  for (int64_t n = 32; n <= 47; ++n) use(n);
  EXPECT_EQ(recorded, 47);
  EXPECT_NE(use(1), first) << "16 others since";
  EXPECT_EQ(recorded, 48) << "32 programs since the first one was compiled";
  for (int64_t n = 47; n >= 17; --n) use(n);
  EXPECT_EQ(recorded, 48) << "plans are made again from kept programs";
  use(1);
  EXPECT_EQ(recorded, 48);
  use(16);
  EXPECT_EQ(recorded, 49);
  EXPECT_NE(executor.program({}, batch_of(1, 47)), nullptr);
  EXPECT_EQ(recorded, 49);
  EXPECT_NE(executor.program({}, batch_of(1, 33)), nullptr);
  EXPECT_EQ(recorded, 50) << "a plan was kept for this one, so that nothing looked for its program";
}

TEST(Executor, DistinguishesVariantsTypesAndShapes) {
  int recorded = 0;
  const Executor executor(
      [&](const Variant& variant, const Inputs& in) -> Inputs {
        ++recorded;
        double factor = static_cast<double>(variant.number);
        for (const int64_t layer : variant.layers) factor = 10 * factor + static_cast<double>(layer);
        return {ops::mul(in[0], Tensor::full({1}, factor))};
      },
      PackedWeights(), {.threads = 1});
  const Tensor x = Tensor::full({2, 2}, 3);
  const auto check = [&](uint64_t number, const std::vector<int64_t>& layers, float factor) {
    const auto plan = executor.plan({number, layers}, batch_of(2, 2));
    EXPECT_EQ(executor.run(*plan, {&x, 1})[0].data<float>()[3], 3 * factor);
  };
  for (int i = 0; i < 2; ++i) {
    check(5, {}, 5);
    check(7, {}, 7);
    check(5, {1, 2}, 512);
    check(5, {2, 1}, 521);
  }
  EXPECT_EQ(recorded, 4);
  executor.plan({5}, batch_of(4, 1));
  EXPECT_EQ(recorded, 5);
  EXPECT_EQ(executor.program({5}, batch_of(2, 2)), executor.program({5}, batch_of(2, 2)));
  EXPECT_NE(executor.program({5}, batch_of(2, 2)), executor.program({7}, batch_of(2, 2)));
  EXPECT_EQ(recorded, 5);
  EXPECT_FALSE((TensorSpec{DType::f32, Shape{2}} == TensorSpec{DType::i64, Shape{2}}));
}

TEST(Executor, ErrorsNameTheBatchAndTheResults) {
  const Executor split(doubling(), PackedWeights(), {.threads = 1, .split_batch = true});
  const auto message = [&](const std::vector<TensorSpec>& specs) {
    return testing::error_of([&] { split.plan({}, specs); });
  };
  const std::string expected = "session: expected inputs with one batch size, at least 1, as their first extent, got ";
  EXPECT_EQ(message({{DType::f32, Shape{2, 3}}, {DType::f32, Shape{3, 3}}}), expected + "[3, 3]");
  EXPECT_EQ(message({{DType::f32, Shape{0, 3}}}), expected + "[0, 3]");
  EXPECT_EQ(message({{DType::f32, Shape{}}}), expected + "[]");
  EXPECT_EQ(message({{DType::f32, Shape{1}}, {DType::f32, Shape{}}}), expected + "[]");
  const Executor averaging([](const Variant&, const Inputs& in) -> Inputs { return {ops::mean(in[0], 0)}; },
                           PackedWeights(), {.threads = 1, .split_batch = true});
  EXPECT_EQ(testing::error_of([&] { averaging.plan({}, batch_of(3, 5)); }),
            "session: expected outputs whose first extent is the batch of 3, got [5]");
  const Tensor x = Tensor::full({2, 3}, 1);
  const auto plan = split.plan({}, batch_of(2, 3));
  const auto run_into = [&](const std::vector<Tensor>& results) {
    return testing::error_of([&] { split.run_into(*plan, {&x, 1}, results); });
  };
  EXPECT_EQ(run_into({}), "session: expected 1 results, got 0");
  EXPECT_EQ(run_into({x, x}), "session: expected 1 results, got 2");
  EXPECT_EQ(run_into({Tensor::zeros({3, 2})}), "session: expected a contiguous result f32 [2, 3], got f32 [3, 2]");
  EXPECT_EQ(run_into({Tensor::zeros({2, 3}, DType::f64)}),
            "session: expected a contiguous result f32 [2, 3], got f64 [2, 3]");
}

TEST(Executor, ProfilesTheLargestPart) {
  for (const auto& [threads, batch] : {std::pair<int, int64_t>{1, 5}, {2, 1}, {2, 3}}) {
    const Executor executor(doubling(), PackedWeights(), {.threads = threads, .split_batch = true});
    const auto plan = executor.plan({}, batch_of(batch, 4));
    const Tensor x = Tensor::full({batch, 4}, 1);
    std::vector<size_t> steps;
    executor.profile(*plan, {&x, 1}, [&](size_t step, double) { steps.push_back(step); });
    EXPECT_EQ(steps, std::vector<size_t>{0});
  }
}

TEST(Executor, StatesTheBytesOfItsPackedWeights) {
  PackedWeights weights;
  weights.get(Tensor::randn({8, 4}, 1), {});
  const size_t bytes = weights.bytes();
  EXPECT_EQ(Executor(doubling(), std::move(weights), {}).packed_bytes(), bytes);
}

// Stores the number of threads that its loops have.
Tensor thread_counting(const Tensor& x, std::atomic<int>* threads) {
  ops::Operation step{.name = "threads", .shape = x.shape()};
  step.kernel = [threads](auto, auto) { *threads = num_threads(); };
  return ops::apply(std::move(step), {x});
}

TEST(Executor, RunsAndProfilesPartsOnTheirThreads) {
  std::atomic<int> threads = 0;
  const Executor executor(
      [&](const Variant&, const Inputs& in) -> Inputs { return {thread_counting(in[0], &threads)}; }, PackedWeights(),
      {.threads = 2, .split_batch = true});
  for (const auto& [batch, want] : {std::pair<int64_t, int>{1, 2}, {2, 1}, {4, 1}}) {
    const auto plan = executor.plan({}, batch_of(batch, 3));
    const Tensor x = Tensor::zeros({batch, 3});
    executor.run(*plan, {&x, 1});
    EXPECT_EQ(threads, want) << "a run of " << batch;
    threads = 0;
    executor.profile(*plan, {&x, 1}, [](size_t, double) {});
    EXPECT_EQ(threads, want) << "a profile of " << batch;
  }
  const auto plan = executor.plan({}, batch_of(3, 3));
  const Tensor x = Tensor::zeros({3, 3});
  executor.run(*plan, {&x, 1});
  EXPECT_EQ(threads, 2) << "both threads share the last sample";
  executor.profile(*plan, {&x, 1}, [](size_t, double) {});
  EXPECT_EQ(threads, 1) << "a part of one thread";
}

}  // namespace
}  // namespace vitrail::infer
