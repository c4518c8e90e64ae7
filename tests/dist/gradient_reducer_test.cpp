// SPDX-License-Identifier: Apache-2.0
#include "vitrail/dist/gradient_reducer.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/dist/thread_communicator.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/dist/buckets_internal.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/loss.h"

namespace vitrail::dist {
namespace {

std::vector<Tensor> parameters() {
  return {Tensor::zeros({10}), Tensor::zeros({3, 4}), Tensor::zeros({2}, DType::f64), Tensor::zeros({100}),
          Tensor::zeros({5})};
}

TEST(Buckets, AreFilledInReverseOrderUntilFullOrTheDtypeChanges) {
  const std::vector<Bucket> buckets = make_buckets(parameters(), 64);
  std::vector<std::vector<size_t>> members;
  for (const Bucket& bucket : buckets) {
    members.emplace_back();
    for (const Bucket::Member& member : bucket.members) members.back().push_back(member.parameter);
  }
  EXPECT_EQ(members, (std::vector<std::vector<size_t>>{{4, 3}, {2}, {1, 0}}));
  EXPECT_EQ(buckets[0].count, 105);
  EXPECT_EQ(buckets[0].members[1].offset, 5);
  EXPECT_EQ(buckets[1].dtype, DType::f64);
}

// Runs one pass in which the gradients become ready in this order.
void run_pass(GradientReducer& reducer, const std::vector<Tensor>& gradients, const std::vector<size_t>& order) {
  reducer.begin();
  for (const size_t p : order) reducer.ready(p, gradients[p]);
  reducer.finish();
}

// All elements of the gradient of parameter p on rank r are (r + 1) · 10^p.
std::vector<Tensor> gradients_of(int rank) {
  std::vector<Tensor> gradients;
  double value = rank + 1;
  for (const Tensor& p : parameters()) {
    gradients.push_back(Tensor::full(p.shape(), value, p.dtype()));
    value *= 10;
  }
  return gradients;
}

TEST(GradientReducer, AveragesOverProcessesWhateverTheReadyOrder) {
  const std::vector<std::vector<size_t>> orders{{4, 3, 2, 1, 0}, {0, 1, 2, 3, 4}, {2, 4, 0, 3, 1}};
  testing::run_ranks(3, [&](const std::shared_ptr<Communicator>& communicator) {
    GradientReducer reducer(communicator, parameters(), {.bucket_bytes = 64});
    for (int repeat = 0; repeat < 3; ++repeat) {
      const std::vector<Tensor> gradients = gradients_of(communicator->rank());
      run_pass(reducer, gradients, orders[(communicator->rank() + repeat) % 3]);
      EXPECT_EQ(reducer.last_pass().buckets, 3);
      double expected = 2;  // the average of 1, 2 and 3
      for (const Tensor& gradient : gradients) {
        const Tensor wide = gradient.to(DType::f64);
        for (int64_t i = 0; i < wide.numel(); ++i) EXPECT_NEAR(wide.data<double>()[i], expected, expected * 1e-6);
        expected *= 10;
      }
    }
    EXPECT_EQ(reducer.total().buckets, 9);
    EXPECT_EQ(reducer.last_pass().bytes, 127 * 4 + 2 * 8);
    EXPECT_EQ(reducer.total().bytes, 3 * (127 * 4 + 2 * 8));
    EXPECT_GE(reducer.total().communication_seconds, reducer.last_pass().communication_seconds);
    EXPECT_GE(reducer.total().overlapped_seconds, reducer.last_pass().overlapped_seconds);
  });
}

TEST(GradientReducer, MissingGradientsCountAsZeros) {
  testing::run_ranks(2, [&](const std::shared_ptr<Communicator>& communicator) {
    GradientReducer reducer(communicator, parameters(), {.bucket_bytes = 1, .average = false});
    const std::vector<Tensor> gradients = gradients_of(communicator->rank());
    const bool second = communicator->rank() == 1;
    run_pass(reducer, gradients, second ? std::vector<size_t>{4, 3} : std::vector<size_t>{4, 1});
    EXPECT_EQ(gradients[4].data<float>()[0], 30000.0f);
    EXPECT_EQ(gradients[3].data<float>()[0], second ? 2000.0f : 1000.0f);  // rank 0 has no gradient for parameter 3
    EXPECT_EQ(gradients[1].data<float>()[0], second ? 20.0f : 10.0f);
  });
}

// The buffer of a bucket has the gradients of the pass before.
TEST(GradientReducer, AMissingGradientIsZeroAfterAPassWithIt) {
  testing::run_ranks(2, [&](const std::shared_ptr<Communicator>& communicator) {
    GradientReducer reducer(communicator, parameters(), {.average = false});
    run_pass(reducer, gradients_of(communicator->rank()), {4, 3, 2, 1, 0});
    const std::vector<Tensor> gradients = gradients_of(communicator->rank());
    const bool second = communicator->rank() == 1;
    run_pass(reducer, gradients, second ? std::vector<size_t>{4, 3, 1} : std::vector<size_t>{4, 2, 0});
    EXPECT_EQ(gradients[4].data<float>()[0], 30000.0F);
    if (second) {
      EXPECT_EQ(gradients[3].data<float>()[0], 2000.0F);
      EXPECT_EQ(gradients[1].data<float>()[0], 20.0F);
    } else {
      EXPECT_EQ(gradients[2].data<double>()[0], 100.0);
      EXPECT_EQ(gradients[0].data<float>()[0], 1.0F);
    }
  });
}

// Counts its all-reduces.
class CountingThreadCommunicator : public testing::ThreadCommunicator {
 public:
  using ThreadCommunicator::ThreadCommunicator;
  void all_reduce_sum(float* data, int64_t n) override {
    ThreadCommunicator::all_reduce_sum(data, n);
    ++done_;
  }
  // Waits until `count` all-reduces are done.  Returns false after a time that no all-reduce takes.
  bool wait_for(int count) const {
    for (int i = 0; i < 30000 && done_ < count; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return done_ >= count;
  }

 private:
  std::atomic<int> done_{0};
};

// Each bucket is reduced as soon as it is full: before the next gradient is ready.
TEST(GradientReducer, ReducesDuringTheBackwardPass) {
  const std::vector<Tensor> shapes{Tensor::zeros({3}), Tensor::zeros({4}), Tensor::zeros({5})};
  const auto shared = std::make_shared<testing::ThreadCommunicator::Shared>(2);
  const auto backward = [&](int rank) {
    const auto communicator = std::make_shared<CountingThreadCommunicator>(shared, rank);
    GradientReducer reducer(communicator, shapes, {.bucket_bytes = 1});
    reducer.begin();
    for (size_t p = 3; p-- > 0;) {
      reducer.ready(p, Tensor::full(shapes[p].shape(), rank + 1, DType::f32));
      EXPECT_TRUE(communicator->wait_for(3 - static_cast<int>(p))) << "bucket " << p << " waits for finish()";
    }
    reducer.finish();
    EXPECT_GT(reducer.last_pass().overlapped_seconds, 0);
    EXPECT_LE(reducer.last_pass().overlapped_seconds, reducer.last_pass().communication_seconds);
  };
  std::thread other([&] { backward(1); });
  backward(0);
  other.join();
}

// Two processes with half of a batch each get the gradients of one process with the complete batch.
TEST(GradientReducer, TwoHalfBatchesGiveTheGradientsOfTheCompleteBatch) {
  const Tensor x = Tensor::randn({8, 6}, 1), labels = Tensor::from<int64_t>({8}, {0, 1, 2, 3, 3, 2, 1, 0});
  const auto leaves = [] {
    std::vector<Tensor> made{Tensor::randn({5, 6}, 2), Tensor::randn({5}, 3), Tensor::randn({4, 5}, 4)};
    for (Tensor& leaf : made) autograd::set_requires_grad(leaf, true);
    return made;
  };
  const auto loss = [&](const std::vector<Tensor>& w, int64_t first, int64_t count) {
    const Tensor hidden = ops::linear(x.narrow(0, first, count), w[0], w[1], kernels::Activation::gelu);
    return ops::cross_entropy(ops::linear(hidden, w[2], {}), labels.narrow(0, first, count));
  };
  const std::vector<Tensor> complete = leaves();
  autograd::backward(loss(complete, 0, 8));
  testing::run_ranks(2, [&](const std::shared_ptr<Communicator>& communicator) {
    const std::vector<Tensor> half = leaves();
    GradientReducer reducer(communicator, half, {.bucket_bytes = 64});
    reducer.begin();
    autograd::backward(loss(half, 4 * communicator->rank(), 4), {},
                       {.on_leaf = [&](autograd::Variable& leaf) { reducer.ready(leaf, leaf.grad); }});
    reducer.finish();
    for (size_t i = 0; i < half.size(); ++i) {  // 8 terms of order 1, summed in another order
      EXPECT_TRUE(vitrail::testing::close(autograd::grad_of(half[i]), autograd::grad_of(complete[i]), 16 * 0x1p-23));
    }
  });
}

// A communicator whose second all-reduce fails.
class FailingCommunicator : public testing::ThreadCommunicator {
 public:
  FailingCommunicator() : ThreadCommunicator(std::make_shared<Shared>(2), 0) {}
  void all_reduce_sum(float*, int64_t) override {
    if (++calls_ == 2) throw Error("connection lost");
  }

 private:
  int calls_ = 0;
};

TEST(GradientReducer, RethrowsAFailedAllReduceAndWorksInTheNextPass) {
  const std::vector<Tensor> shapes{Tensor::zeros({2}), Tensor::zeros({2}), Tensor::zeros({2})};
  GradientReducer reducer(std::make_shared<FailingCommunicator>(), shapes, {.bucket_bytes = 1});
  EXPECT_THROW(run_pass(reducer, shapes, {2, 1, 0}), Error);
  EXPECT_NO_THROW(run_pass(reducer, shapes, {2, 1, 0}));
}

TEST(GradientReducer, DoesNothingWithOneProcess) {
  GradientReducer reducer(single_process(), parameters());
  const std::vector<Tensor> gradients = gradients_of(0);
  run_pass(reducer, gradients, {4, 3, 2, 1, 0});
  EXPECT_EQ(gradients[3].data<float>()[0], 1000.0f);
  EXPECT_EQ(reducer.last_pass().bytes, 0);
}

// Gradients may be freed between passes.
TEST(GradientReducer, KeepsNoGradientsAfterAPass) {
  testing::run_ranks(2, [&](const std::shared_ptr<Communicator>& communicator) {
    GradientReducer reducer(communicator, parameters());
    const std::vector<Tensor> gradients = gradients_of(communicator->rank());
    run_pass(reducer, gradients, {4, 3, 2, 1, 0});
    for (const Tensor& gradient : gradients) EXPECT_EQ(gradient.storage().use_count(), 1);
  });
}

TEST(GradientReducer, RefusesWrongCallsAndGradients) {
  GradientReducer reducer(std::make_shared<FailingCommunicator>(), parameters());
  EXPECT_THROW(reducer.ready(0, Tensor::zeros({10})), Error);
  EXPECT_THROW(reducer.finish(), Error);
  reducer.begin();
  EXPECT_THROW(reducer.begin(), Error);
  EXPECT_THROW(reducer.ready(5, Tensor::zeros({10})), Error);
  EXPECT_THROW(reducer.ready(0, Tensor::zeros({11})), Error);
  reducer.ready(0, Tensor::zeros({10}));
  EXPECT_THROW(reducer.ready(0, Tensor::zeros({10})), Error);
}

TEST(Buckets, OfNoBytesAndOfHalfPrecisionAreErrors) {
  EXPECT_THROW(make_buckets(parameters(), 0), Error);
  EXPECT_THROW(make_buckets({Tensor::zeros({2}, DType::bf16)}, 64), Error);
  EXPECT_TRUE(make_buckets({}, 64).empty());
}

// A bucket is full when it has at least its bytes.
TEST(Buckets, OfExactlyTheirBytesAreFull) {
  const std::vector<Tensor> four{Tensor::zeros({4}), Tensor::zeros({4}), Tensor::zeros({4})};
  EXPECT_EQ(make_buckets(four, 16).size(), 3u);
  EXPECT_EQ(make_buckets(four, 17).size(), 2u);
  EXPECT_EQ(make_buckets(four, 32).size(), 2u);
  EXPECT_EQ(make_buckets(four, 33).size(), 1u);
}

TEST(GradientReducer, RefusesStridedAndForeignGradients) {
  std::vector<Tensor> leaves{Tensor::zeros({2, 3})};
  autograd::set_requires_grad(leaves[0], true);
  GradientReducer reducer(std::make_shared<FailingCommunicator>(), leaves);
  reducer.begin();
  EXPECT_THROW(reducer.ready(0, Tensor::zeros({3, 2}).transpose(0, 1)), Error);
  EXPECT_THROW(reducer.ready(0, Tensor::zeros({2, 3}, DType::f64)), Error);
  Tensor other = Tensor::zeros({2, 3});
  autograd::set_requires_grad(other, true);
  EXPECT_THROW(reducer.ready(*other.autograd(), Tensor::zeros({2, 3})), Error);
  EXPECT_NO_THROW(reducer.ready(*leaves[0].autograd(), Tensor::zeros({2, 3})));
}

TEST(GradientReducer, SumsWhereTheAverageIsNotWanted) {
  testing::run_ranks(3, [&](const std::shared_ptr<Communicator>& communicator) {
    for (const int64_t bytes : {1, 64, 1 << 20}) {
      GradientReducer reducer(communicator, parameters(), {.bucket_bytes = bytes, .average = false});
      const std::vector<Tensor> gradients = gradients_of(communicator->rank());
      run_pass(reducer, gradients, {4, 3, 2, 1, 0});
      double expected = 6;  // 1 + 2 + 3
      for (const Tensor& gradient : gradients) {
        const Tensor wide = gradient.to(DType::f64);
        for (int64_t i = 0; i < wide.numel(); ++i) EXPECT_EQ(wide.data<double>()[i], expected);
        expected *= 10;
      }
    }
  });
}

TEST(GradientReducer, ErrorsSayWhatIsExpected) {
  GradientReducer reducer(std::make_shared<FailingCommunicator>(), parameters());
  const auto message = [](const std::function<void()>& action) { return vitrail::testing::error_of(action); };
  const std::string where = "gradient reducer: expected ";
  EXPECT_EQ(message([&] { reducer.finish(); }), where + "begin() before finish(), got no pass");
  EXPECT_EQ(message([&] { reducer.ready(3, Tensor::zeros({100})); }),
            where + "begin() before gradients, got a gradient of parameter 3");
  reducer.begin();
  EXPECT_EQ(message([&] { reducer.begin(); }), where + "finish() before the next begin(), got begin() twice");
  EXPECT_EQ(message([&] { reducer.ready(5, Tensor::zeros({100})); }),
            where + "one gradient of each of 5 parameters, got another of parameter 5");
  EXPECT_EQ(message([&] {
              reducer.ready(1, Tensor::zeros({4, 3}));
            }),
            where + "a contiguous gradient f32 [3, 4] of parameter 1, got f32 [4, 3]");
  EXPECT_EQ(message([&] { reducer.ready(2, Tensor::zeros({2})); }),
            where + "a contiguous gradient f64 [2] of parameter 2, got f32 [2]");
  Tensor other = Tensor::zeros({2, 3});
  autograd::set_requires_grad(other, true);
  EXPECT_EQ(message([&] { reducer.ready(*other.autograd(), other); }),
            where + "a gradient of one of its parameters, got one of another tensor");
  EXPECT_EQ(message([] { make_buckets({}, 0); }), where + "buckets of at least one byte, got 0");
  EXPECT_EQ(message([] { make_buckets({Tensor::zeros({2}, DType::f16)}, 1); }),
            where + "parameters in f32 or f64, got f16");
  const ReducerOptions defaults;
  EXPECT_EQ(defaults.bucket_bytes, 4 << 20);
  EXPECT_TRUE(defaults.average);
}

// The last parameter is the first member, and each other one is behind the one before it.
TEST(Buckets, HaveThePlacesOfTheirMembers) {
  const std::vector<Bucket> buckets = make_buckets(parameters(), 1 << 20);
  ASSERT_EQ(buckets.size(), 3u);  // the third parameter is f64
  std::vector<std::array<int64_t, 4>> members;
  for (size_t b = 0; b < buckets.size(); ++b) {
    EXPECT_EQ(buckets[b].buffer.numel(), buckets[b].count);
    EXPECT_EQ(buckets[b].buffer.dtype(), b == 1 ? DType::f64 : DType::f32);
    for (const Bucket::Member& m : buckets[b].members)
      members.push_back({static_cast<int64_t>(b), static_cast<int64_t>(m.parameter), m.offset, m.count});
  }
  EXPECT_EQ(members, (std::vector<std::array<int64_t, 4>>{
                         {0, 4, 0, 5}, {0, 3, 5, 100}, {1, 2, 0, 2}, {2, 1, 0, 12}, {2, 0, 12, 10}}));
  EXPECT_EQ(buckets[0].count, 105);
  EXPECT_EQ(buckets[2].count, 22);
}

// A double counts twice as much: 3 of them fill a bucket of 24 bytes, and 3 floats do not.
TEST(Buckets, AreFullByBytes) {
  for (const auto& [dtype, count] : {std::pair{DType::f64, 2u}, {DType::f32, 1u}}) {
    const std::vector<Tensor> two{Tensor::zeros({3}, dtype), Tensor::zeros({3}, dtype)};
    EXPECT_EQ(make_buckets(two, 24).size(), count);
  }
}

TEST(GradientReducer, AFailedPassLeavesTheStatisticsOfTheLastOne) {
  GradientReducer reducer(std::make_shared<FailingCommunicator>(), {Tensor::zeros({2}), Tensor::zeros({3})},
                          {.bucket_bytes = 1});
  const std::vector<Tensor> gradients{Tensor::zeros({2}), Tensor::zeros({3})};
  EXPECT_EQ(vitrail::testing::error_of([&] { run_pass(reducer, gradients, {1, 0}); }), "connection lost");
  EXPECT_EQ(reducer.last_pass().buckets, 0);
  EXPECT_EQ(reducer.total().buckets, 0);
  run_pass(reducer, gradients, {1, 0});
  run_pass(reducer, gradients, {0, 1});
  EXPECT_EQ(reducer.last_pass().buckets, 2);
  EXPECT_EQ(reducer.last_pass().bytes, 20);
  EXPECT_EQ(reducer.total().buckets, 4);
  EXPECT_EQ(reducer.total().bytes, 40);
  EXPECT_GE(reducer.total().wait_seconds, reducer.last_pass().wait_seconds);
}

}  // namespace
}  // namespace vitrail::dist
