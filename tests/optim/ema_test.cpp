// SPDX-License-Identifier: Apache-2.0
#include "vitrail/optim/ema.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/golden.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"

namespace vitrail::optim {
namespace {

EmaOptions options_of(const nlohmann::json& config) {
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
    Ema ema({{"w", weight}}, options_of(config));
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

}  // namespace
}  // namespace vitrail::optim
