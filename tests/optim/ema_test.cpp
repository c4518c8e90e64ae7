// SPDX-License-Identifier: Apache-2.0
#include "vitrail/optim/ema.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/ops/elementwise.h"

namespace vitrail::optim {
namespace {

EmaOptions ema_options_of(const nlohmann::json& config) {
  EmaOptions o;
  o.decay = config.at("decay");
  o.warmup = config.value("warmup", o.warmup);
  o.warmup_gamma = config.value("warmup_gamma", o.warmup_gamma);
  o.warmup_power = config.value("warmup_power", o.warmup_power);
  o.min_decay = config.value("min_decay", o.min_decay);
  o.after_step = config.value("after_step", o.after_step);
  return o;
}

// 60 updates with two roundings each, of values of order 1: 120 · 2^-53.
TEST(Ema, MatchesTimmsModelEmaV3) {
  const auto golden = testing::read_golden(testing::fixture("optim/averages.safetensors"));
  const Tensor walk = golden["walk"];
  const auto cases = nlohmann::json::parse(golden.config);
  for (const auto& [name, config] : cases.items()) {
    const Tensor weight = walk.select(0, 0).clone();
    Ema ema({{"w", weight}}, ema_options_of(config));
    for (int64_t step = 1; step < walk.size(0); ++step) {
      weight.copy_(walk.select(0, step));
      ema.update(step);
      ASSERT_TRUE(testing::close(ema.average()[0].tensor, golden[name].select(0, step - 1), 2e-14)) << name << step;
    }
  }
}

TEST(Ema, SwapExchangesWeightsAndAverageAndBack) {
  const Tensor weight = Tensor::full({40000}, 1);
  Ema ema({{"w", weight}}, {.decay = 0.75});
  ema.update(1);
  weight.copy_(Tensor::full({40000}, 5));
  ema.update(2);
  ema.swap();
  EXPECT_EQ(weight.data<float>()[39999], 2.0f);  // 0.75 · 1 + 0.25 · 5
  EXPECT_EQ(ema.average()[0].tensor.data<float>()[39999], 5.0f);
  ema.swap();
  EXPECT_EQ(weight.data<float>()[0], 5.0f);
}

TEST(Ema, LoadsOnlyAnAverageOfItsOwnNamesAndDtypes) {
  const Tensor weight = Tensor::zeros({3});
  Ema ema({{"w", weight}}, {});
  ema.load({{"w", Tensor::full({3}, 2)}});
  EXPECT_EQ(ema.average()[0].tensor.data<float>()[0], 2.0f);
  EXPECT_THROW(ema.load({{"v", Tensor::full({3}, 3)}}), Error);
  EXPECT_THROW(ema.load({{"w", Tensor::full({3}, 3, DType::f64)}}), Error);
  EXPECT_EQ(ema.average()[0].tensor.data<float>()[0], 2.0f);
}

TEST(Ema, OptionsOutOfRangeAreErrors) {
  EXPECT_THROW(Ema({}, {.decay = 1}), Error);
  EXPECT_THROW(Ema({}, {.decay = 0.5, .min_decay = 0.6}), Error);
  EXPECT_THROW(Ema({}, {.warmup = true, .warmup_gamma = 0}), Error);
}

// The first copy of the weights remains with the share decay^updates.
TEST(Ema, IsWarmedUpWhenLittleOfItsFirstCopyRemains) {
  for (const double decay : {0.0, 0.5, 0.9, 0.99}) {
    for (const int64_t after_step : {0, 5}) {
      const Ema ema({{"w", Tensor::zeros({1})}}, {.decay = decay, .after_step = after_step});
      double share = 1;
      EXPECT_FALSE(ema.warmed_up(0));
      EXPECT_FALSE(ema.warmed_up(after_step + 1)) << "the first update is a copy";
      for (int64_t updates = 1; updates < 150; ++updates) {
        share *= decay;
        ASSERT_EQ(ema.warmed_up(after_step + 1 + updates), share <= std::exp(-1.0)) << decay << ", " << updates;
      }
    }
  }
}

TEST(Ema, DecayIsZeroUpToTheFirstUpdateAndThenThatOfTheOptions) {
  const std::vector<nn::NamedTensor> weights{{"w", Tensor::zeros({1})}};
  const Ema plain(weights, {.decay = 0.75, .after_step = 3});
  for (int64_t step = 0; step <= 4; ++step) EXPECT_EQ(plain.decay(step), 0) << step;
  EXPECT_EQ(plain.decay(5), 0.75);
  EXPECT_EQ(plain.decay(1'000'000), 0.75);
  const EmaOptions options{.decay = 0.9, .warmup = true, .warmup_gamma = 2, .warmup_power = 0.75, .min_decay = 0.5};
  const Ema warming(weights, options);
  EXPECT_EQ(warming.decay(1), 0);
  for (int64_t updates = 1; updates < 200; ++updates) {
    const double rising = 1 - std::pow(1 + static_cast<double>(updates) / 2, -0.75);
    EXPECT_DOUBLE_EQ(warming.decay(1 + updates), std::clamp(rising, 0.5, 0.9)) << updates;
  }
}

TEST(Ema, AveragesEveryTensorInItsOwnPrecision) {
  const Tensor a = Tensor::randn({70000}, 1), b = Tensor::randn({3}, 2, DType::f64);
  Ema ema({{"a", a}, {"b", b}}, {.decay = 0.75});
  ema.update(1);
  const Tensor first_a = a.clone(), first_b = b.clone();
  a.copy_(Tensor::randn({70000}, 3));
  b.copy_(Tensor::randn({3}, 4, DType::f64));
  ema.update(2);
  const auto mean = [](const Tensor& old, const Tensor& now) {
    return ops::add(ops::mul(old, Tensor::full({1}, 0.75, old.dtype())),
                    ops::mul(now, Tensor::full({1}, 0.25, old.dtype())));
  };
  EXPECT_TRUE(testing::close(ema.average()[0].tensor, mean(first_a, a), 1e-6));
  EXPECT_TRUE(testing::close(ema.average()[1].tensor, mean(first_b, b), 1e-15));
  EXPECT_EQ(ema.average()[1].name, "b");
}

TEST(Ema, RefusesWeightsThatCannotBeAveraged) {
  const auto message = [](const std::vector<nn::NamedTensor>& weights) {
    return testing::error_of([&] { Ema(weights, {}); });
  };
  EXPECT_TRUE(testing::contains(message({{"w", Tensor()}}), "a tensor with data, got none for 'w'"));
  EXPECT_TRUE(testing::contains(message({{"w", Tensor::zeros({2}, DType::f16)}}), "weights in f32 or f64"));
  EXPECT_TRUE(testing::contains(message({{"w", Tensor::zeros({2, 3}).transpose(0, 1)}}), "a strided view for 'w'"));
  EXPECT_TRUE(testing::contains(message({{"w", Tensor::zeros({2})}, {"w", Tensor::zeros({2})}}), "'w' twice"));
  EXPECT_THROW(Ema({}, {.decay = -0.1}), Error);
  EXPECT_THROW(Ema({}, {.min_decay = -0.1}), Error);
  EXPECT_THROW(Ema({}, {.warmup_power = 0}), Error);
  EXPECT_NO_THROW(Ema({}, {.decay = 0.5, .min_decay = 0.5}));
}

TEST(Ema, AnAverageWithATensorTooManyOrTwiceIsRefused) {
  Ema ema({{"w", Tensor::zeros({3})}}, {});
  const Tensor two = Tensor::full({3}, 2);
  EXPECT_TRUE(testing::contains(testing::error_of([&] { ema.load({{"w", two}, {"w", two}}); }), "'w' occurs twice"));
  EXPECT_TRUE(testing::contains(testing::error_of([&] { ema.load({{"w", two}, {"v", two}}); }), "'v' is not expected"));
  EXPECT_TRUE(testing::contains(testing::error_of([&] { ema.load({}); }), "'w' is missing"));
  std::vector<nn::NamedTensor> many;
  for (int i = 0; i < 30; ++i) many.push_back({"x" + std::to_string(i), two});
  const std::string message = testing::error_of([&] { ema.load(many); });
  EXPECT_TRUE(testing::contains(message, "ema: 31 differences")) << message;
  EXPECT_TRUE(testing::contains(message, "\n  and 11 more")) << message;
  EXPECT_EQ(ema.average()[0].tensor.data<float>()[0], 0);
}

TEST(Ema, DefaultsAreTimms) {
  const EmaOptions options;
  EXPECT_EQ(options.decay, 0.9999);
  EXPECT_FALSE(options.warmup);
  EXPECT_EQ(options.warmup_gamma, 1);
  EXPECT_EQ(options.warmup_power, 2.0 / 3);
  EXPECT_EQ(options.min_decay, 0);
  EXPECT_EQ(options.after_step, 0);
}

TEST(Ema, ErrorsNameTheOption) {
  const auto message = [](const EmaOptions& options) { return testing::error_of([&] { Ema({}, options); }); };
  EXPECT_ERROR(message({.decay = 1}), "ema", "1");
  EXPECT_ERROR(message({.decay = -0.5}), "ema", "-0.5");
  EXPECT_ERROR(message({.decay = std::nan("")}), "ema", "nan");
  EXPECT_ERROR(message({.decay = 0.5, .min_decay = 0.75}), "ema", "0.75");
  EXPECT_ERROR(message({.decay = 0.5, .min_decay = -1}), "ema", "-1");
  EXPECT_ERROR(message({.warmup_gamma = 0, .warmup_power = 2}), "ema", "0 and 2");
  EXPECT_ERROR(message({.warmup_gamma = 3, .warmup_power = 0}), "ema", "3 and 0");
  EXPECT_NO_THROW(Ema({}, {.decay = 0, .warmup_gamma = 1e-9, .warmup_power = 1e-9}));
}

// Up to step after_step + 1 the average is the weights, and the warm-up counts from there.
TEST(Ema, FollowsTheWeightsUntilItsFirstStep) {
  const Tensor weight = Tensor::full({3}, 1);
  Ema ema({{"w", weight}}, {.decay = 0.5, .after_step = 2});
  float expected = 0;
  for (int64_t step = 1; step <= 6; ++step) {
    weight.copy_(Tensor::full({3}, static_cast<double>(step * step)));
    ema.update(step);
    expected = step <= 3 ? static_cast<float>(step * step) : (expected + static_cast<float>(step * step)) / 2;
    EXPECT_EQ(ema.average()[0].tensor.data<float>()[2], expected) << step;
  }
  const Ema warming({{"w", weight}},
                    {.decay = 0.9, .warmup = true, .warmup_gamma = 4, .warmup_power = 0.5, .after_step = 2});
  EXPECT_EQ(warming.decay(3), 0);
  EXPECT_DOUBLE_EQ(warming.decay(4), 1 - 1 / std::sqrt(1.25));
  EXPECT_DOUBLE_EQ(warming.decay(15), 0.5);  // (1 + 12 / 4)^(−1/2)
  EXPECT_EQ(warming.decay(100000), 0.9);
}

// A wrong list of differences is cut after the twentieth.
TEST(Ema, AnAverageOfOtherShapesListsTheDifferences) {
  std::vector<nn::NamedTensor> weights, other;
  for (int i = 0; i < 21; ++i) {
    weights.push_back({"w" + std::to_string(i), Tensor::zeros({2, 3})});
    other.push_back({"w" + std::to_string(i), i == 20 ? Tensor::zeros({2, 3}) : Tensor::zeros({3, 2}, DType::f64)});
  }
  Ema ema(weights, {});
  std::string expected = "ema: 20 differences";
  for (int i = 0; i < 20; ++i) expected += "\n  'w" + std::to_string(i) + "': expected f32 [2, 3], got f64 [3, 2]";
  EXPECT_EQ(testing::error_of([&] { ema.load(other); }), expected);
  other[20].name = "x";
  EXPECT_EQ(testing::error_of([&] { ema.load(other); }),
            "ema: 22 differences" + expected.substr(expected.find('\n')) + "\n  and 2 more");
}

}  // namespace
}  // namespace vitrail::optim
