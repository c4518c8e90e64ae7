// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/dropout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"
#include "vitrail/base/random.h"
#include "vitrail/ops/elementwise.h"

namespace vitrail::nn {
namespace {

using testing::error_of;

const Tensor ones = Tensor::full({100, 1000}, 1);

Dropout training_dropout(double p, const std::string& path = "drop") {
  Dropout layer(p, path);
  layer.train();
  return layer;
}

TEST(Dropout, IsTheIdentityInEval) {
  const Dropout layer(0.5, "drop");
  EXPECT_EQ(layer.forward(ones).storage(), ones.storage());
  EXPECT_EQ(training_dropout(0).forward(ones).storage(), ones.storage());
}

// The dropped fraction of n = 10^5 draws has the standard deviation √(p (1 − p) / n) ≤ 1.6e-3.  The tolerance is six
// deviations.
TEST(Dropout, DropsTheGivenFractionAndScalesTheOthers) {
  for (const double p : {0.1, 0.5, 0.9}) {
    const Tensor y = training_dropout(p).forward(ones);
    const auto kept = static_cast<float>(1 / (1 - p));
    int64_t dropped = 0;
    for (int64_t i = 0; i < y.numel(); ++i) {
      const float value = y.data<float>()[i];
      dropped += value == 0;
      ASSERT_TRUE(value == 0 || value == kept) << value;
    }
    EXPECT_NEAR(static_cast<double>(dropped) / static_cast<double>(y.numel()), p, 6 * std::sqrt(p * (1 - p) / 1e5));
  }
}

TEST(Dropout, DrawsDependOnSeedStepAndPath) {
  const auto draw = [](uint64_t seed, uint64_t step, const std::string& path) {
    const RandomScope scope(seed, step);
    return training_dropout(0.5, path).forward(ones);
  };
  const Tensor first = draw(1, 2, "blocks.0.drop");
  EXPECT_TRUE(testing::close(draw(1, 2, "blocks.0.drop"), first, 0));
  EXPECT_FALSE(testing::close(draw(2, 2, "blocks.0.drop"), first, 0));
  EXPECT_FALSE(testing::close(draw(1, 3, "blocks.0.drop"), first, 0));
  EXPECT_FALSE(testing::close(draw(2, 1, "blocks.0.drop"), first, 0));
  EXPECT_FALSE(testing::close(draw(1, 2, "blocks.1.drop"), first, 0));
}

TEST(Dropout, ScopesNest) {
  const Dropout layer = training_dropout(0.5);
  const RandomScope outer(1, 1);
  const Tensor before = layer.forward(ones);
  {
    const RandomScope inner(1, 2);
    EXPECT_FALSE(testing::close(layer.forward(ones), before, 0));
  }
  EXPECT_TRUE(testing::close(layer.forward(ones), before, 0));
}

TEST(Dropout, ThrowsAnErrorThatNamesTheLayerForABadProbability) {
  for (const double p : {-0.1, 1.0, 1.5, std::nan("")}) {
    EXPECT_THROW(Dropout(p, "drop"), Error) << p;
    EXPECT_THROW(DropPath(p, "drop"), Error) << p;
  }
  try {
    Dropout(1.0, "blocks.3.attn.proj_drop");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "blocks.3.attn.proj_drop: expected a dropout probability in [0, 1), got 1.0");
  }
}

TEST(DropPath, DropsOrScalesEachSample) {
  DropPath layer(0.25, "path");
  EXPECT_FALSE(layer.keep(4).defined()) << "eval";
  layer.train();
  const Tensor keep = layer.keep(10000);
  EXPECT_EQ(keep.dtype(), DType::f64);
  const double* begin = keep.data<double>();
  const auto kept = std::count(begin, begin + 10000, 1 / 0.75);
  EXPECT_EQ(kept + std::count(begin, begin + 10000, 0.0), 10000);
  EXPECT_NEAR(static_cast<double>(kept), 7500, 6 * std::sqrt(0.25 * 0.75 * 10000));  // six deviations
  EXPECT_TRUE(testing::close(layer.keep(10000), keep, 0));
}

TEST(RandomOrders, ArePermutationsThatDependOnThePositionInTheBatch) {
  const RandomScope scope(3, 4);
  const auto orders = random_orders("patch_drop", 2, 100);
  EXPECT_EQ(orders, random_orders("patch_drop", 2, 100));
  EXPECT_NE(orders[0], orders[1]);
  for (std::vector<int64_t> order : orders) {
    std::sort(order.begin(), order.end());
    for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
  }
  const RandomScope second_half(3, 4, {1, 7});
  EXPECT_EQ(random_orders("patch_drop", 2, 100)[0], orders[1]);
}

TEST(Dropout, ASampleHasItsDrawsWhateverTheOthersOfTheBatch) {
  const Dropout layer = training_dropout(0.5);
  const Tensor x = Tensor::full({4, 50}, 1);
  Tensor whole, part;
  {
    const RandomScope scope(1, 2);
    whole = layer.forward(x);
  }
  {
    const RandomScope scope(1, 2, {3, 0});
    part = layer.forward(x.narrow(0, 0, 2));
  }
  EXPECT_TRUE(testing::close(part.select(0, 0), whole.select(0, 3), 0));
  EXPECT_TRUE(testing::close(part.select(0, 1), whole.select(0, 0), 0));
}

// Each of the n! orders of 3 elements is drawn about as often: 6000 / 6 with the deviation √(6000 · 5/36) = 29.
TEST(RandomOrders, AreEquallyLikely) {
  const RandomScope scope(5, 6);
  std::map<std::vector<int64_t>, int> counts;
  for (const std::vector<int64_t>& order : random_orders("patch_drop", 6000, 3)) ++counts[order];
  ASSERT_EQ(counts.size(), 6u);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 1000, 6 * 29);
  EXPECT_EQ(random_orders("patch_drop", 2, 1)[1], std::vector<int64_t>{0});
  EXPECT_TRUE(random_orders("patch_drop", 1, 0)[0].empty());
}

TEST(Dropout, IsActiveInTrainingWithAProbabilityAboveZero) {
  Dropout drop(0.25, "drop"), none(0, "drop");
  EXPECT_FALSE(drop.active());
  drop.train();
  none.train();
  EXPECT_TRUE(drop.active());
  EXPECT_FALSE(none.active());
  EXPECT_EQ(DropPath(0.25, "p").type(), "DropPath");
  EXPECT_EQ(DropPath(0, "p").type(), "Identity");
  EXPECT_EQ(DropPath(0.0625, "p").extra(), "drop_prob=0.062");
  EXPECT_EQ(DropPath(0, "p").extra(), "");
  EXPECT_ERROR(error_of([] { Dropout(1, ""); }), "dropout", "1.0");
  EXPECT_ERROR(error_of([] { DropPath(-0.5, "blocks.1.drop_path1"); }), "blocks.1.drop_path1", "-0.5");
  DropPath path(0.5, "p");
  EXPECT_FALSE(path.keep(3).defined());
  path.train();
  EXPECT_EQ(path.keep(3).shape(), (Shape{3}));
}

TEST(Dropout, MasksAreThoseOfPathSeedStepAndPositions) {
  Dropout drop(0.5, "blocks.0.drop");
  DropPath path(0.5, "blocks.0.path");
  drop.train();
  path.train();
  const RandomScope scope(7, 9, {4, 2});
  EXPECT_EQ(RandomScope::current().seed, 7u);
  EXPECT_EQ(RandomScope::current().step, 9u);
  EXPECT_EQ(RandomScope::current().positions, (std::vector<int64_t>{4, 2}));
  const Tensor x = Tensor::randn({2, 30}, 1);
  const Tensor mask = ops::dropout_mask({2, 30}, 0.5, random_key("blocks.0.drop", 7, 9), {4, 2}, DType::f32);
  EXPECT_TRUE(testing::close(drop.forward(x), ops::mul(x, mask), 0));
  const Tensor keep = ops::dropout_mask({2}, 0.5, random_key("blocks.0.path", 7, 9), {4, 2}, DType::f64);
  EXPECT_TRUE(testing::close(path.keep(2), keep, 0));
  {
    const RandomScope inner(1, 2);
    EXPECT_TRUE(RandomScope::current().positions.empty());
  }
  EXPECT_EQ(RandomScope::current().step, 9u);
}

// Fisher–Yates from the last place, with one uniform draw each.
TEST(RandomOrders, FollowTheDrawsOfTheirPath) {
  for (const std::vector<int64_t>& positions : {std::vector<int64_t>{}, {5, 3}}) {
    const RandomScope scope(7, 9, positions);
    const auto orders = random_orders("patch_drop", 2, 6);
    ASSERT_EQ(orders.size(), 2u);
    for (size_t b = 0; b < 2; ++b) {
      RandomStream random(random_key("patch_drop", 7, 9), positions.empty() ? b : static_cast<uint64_t>(positions[b]));
      std::vector<int64_t> want(6);
      std::iota(want.begin(), want.end(), 0);
      for (size_t i = 5; i > 0; --i)
        std::swap(want[i], want[static_cast<size_t>(random.uniform() * static_cast<double>(i + 1))]);
      EXPECT_EQ(orders[b], want);
    }
  }
}

}  // namespace
}  // namespace vitrail::nn
