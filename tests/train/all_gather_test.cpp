// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run/all_gather_internal.h"

#include "tests/dist/thread_communicator.h"
#include "tests/train/training_fixture.h"

namespace vitrail::train {
namespace {

ClassEvaluation first_part() {
  return {.images = 4,
          .skipped = 1,
          .loss = 0.5,
          .top1 = 0.25,
          .top5 = 0.75,
          .confusion = {{1, 2}, {0, 1}},
          .worst = {{3, 1, 0, 0.75, 0.125}, {7, 0, 1, 0.5, 0.375}}};
}

ClassEvaluation second_part() {
  return {.images = 12,
          .skipped = 2,
          .loss = 1.5,
          .top1 = 0.5,
          .top5 = 1,
          .confusion = {{4, 0}, {6, 2}},
          .worst = {{5, 2, 4, 0.625, 0.25}}};
}

void expect_same_mistake(const Misclassification& got, const Misclassification& want) {
  EXPECT_EQ(got.sample, want.sample);
  EXPECT_EQ(got.label, want.label);
  EXPECT_EQ(got.prediction, want.prediction);
  EXPECT_EQ(got.prediction_probability, want.prediction_probability);
  EXPECT_EQ(got.label_probability, want.label_probability);
}

TEST(AllGather, IsTheEvaluationOfTheImagesOfAllProcesses) {
  dist::testing::run_ranks(2, [](const std::shared_ptr<dist::Communicator>& communicator) {
    const ClassEvaluation all =
        all_gather(ProcessGroup(communicator), communicator->rank() == 0 ? first_part() : second_part());
    EXPECT_EQ(all.images, 16);
    EXPECT_EQ(all.skipped, 3);
    EXPECT_EQ(all.loss, (0.5 * 4 + 1.5 * 12) / 16);
    EXPECT_EQ(all.top1, 7.0 / 16);
    EXPECT_EQ(all.top5, 15.0 / 16);
    EXPECT_EQ(all.confusion, (std::vector<std::vector<int64_t>>{{5, 2}, {6, 3}}));
    ASSERT_EQ(all.worst.size(), 3u);  // by the probability of the label
    expect_same_mistake(all.worst[0], first_part().worst[0]);
    expect_same_mistake(all.worst[1], second_part().worst[0]);
    expect_same_mistake(all.worst[2], first_part().worst[1]);
  });
}

TEST(AllGather, KeepsAsManyMistakesAsOneProcess) {
  dist::testing::run_ranks(2, [](const std::shared_ptr<dist::Communicator>& communicator) {
    ClassEvaluation own;
    for (size_t i = 0; i < kMaxMisclassifications; ++i) {
      const auto at = static_cast<int64_t>(2 * i) + communicator->rank();
      own.worst.push_back({.sample = at, .label_probability = static_cast<double>(at) / 64});
    }
    const ClassEvaluation all = all_gather(ProcessGroup(communicator), own);
    ASSERT_EQ(all.worst.size(), kMaxMisclassifications);
    for (size_t i = 0; i < all.worst.size(); ++i) EXPECT_EQ(all.worst[i].sample, static_cast<int64_t>(i));
    EXPECT_EQ(all.images, 0);
    EXPECT_EQ(all.loss, 0);
  });
}

TEST(AllGather, OfOneProcessIsItsOwn) {
  const ClassEvaluation all = all_gather(ProcessGroup(nullptr), first_part());
  EXPECT_EQ(all.images, 4);
  EXPECT_EQ(all.top5, 0.75);
  EXPECT_EQ(all.worst.size(), 2u);
}

TEST(ProcessGroup, TheFirstTextIsThatOfTheLowestProcessThatHasOne) {
  for (const int silent : {0, 1, 2, 3}) {
    dist::testing::run_ranks(3, [silent](const std::shared_ptr<dist::Communicator>& communicator) {
      const ProcessGroup group(communicator);
      const std::string own = group.rank() < silent ? "" : str("text ", group.rank());
      const std::string want = silent == 3 ? "" : str("on process ", silent, ", text ", silent);
      EXPECT_EQ(group.first_nonempty_text(own), want);
      EXPECT_EQ(group.any(group.rank() == silent), silent < 3);
    });
  }
  EXPECT_EQ(ProcessGroup(nullptr).first_nonempty_text("alone"), "alone");
}

TEST(ProcessGroup, SumsAndBroadcastsOverItsProcesses) {
  dist::testing::run_ranks(3, [](const std::shared_ptr<dist::Communicator>& communicator) {
    const ProcessGroup group(communicator);
    EXPECT_EQ(group.size(), 3);
    EXPECT_EQ(group.is_rank_zero(), communicator->rank() == 0);
    EXPECT_EQ(group.communicator(), communicator);
    const double rank = group.rank();
    std::vector<double> values{rank, 10 * rank, 1};
    group.all_reduce_sum(values);
    EXPECT_EQ(values, (std::vector<double>{3, 30, 3}));
    const std::string own(static_cast<size_t>(2 * group.rank() + 1), static_cast<char>('a' + group.rank()));
    EXPECT_EQ(group.broadcast_text(own), "a");
    EXPECT_EQ(group.broadcast_text(own, 2), "ccccc");
    EXPECT_EQ(group.broadcast_text(group.rank() == 1 ? "" : own, 1), "");
    const Tensor single = Tensor::full({2, 3}, rank), wide = Tensor::full({5}, rank + 7, DType::f64);
    group.broadcast_tensors({{"single", single}, {"wide", wide}});
    for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(single.data<float>()[i], 0);
    for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(wide.data<double>()[i], 7);
    EXPECT_EQ(error_of([&] {
                group.broadcast_tensors({{"strided", Tensor::zeros({2, 3}).transpose(0, 1)}});
              }),
              "broadcast: expected a contiguous tensor, got strided");
  });
}

TEST(ProcessGroup, OfOneProcessChangesNothing) {
  const ProcessGroup alone(nullptr);
  EXPECT_EQ(alone.size(), 1);
  EXPECT_TRUE(alone.is_rank_zero());
  EXPECT_EQ(alone.broadcast_text("text"), "text");
  EXPECT_TRUE(alone.any(true));
  EXPECT_FALSE(alone.any(false));
  EXPECT_NO_THROW(alone.broadcast_tensors({{"strided", Tensor::zeros({2, 3}).transpose(0, 1)}}));
}

}  // namespace
}  // namespace vitrail::train
