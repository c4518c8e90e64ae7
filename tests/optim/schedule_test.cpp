// SPDX-License-Identifier: Apache-2.0
#include "vitrail/optim/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"

namespace vitrail::optim {
namespace {

ScheduleOptions schedule_options_of(const nlohmann::json& config) {
  ScheduleOptions o;
  o.kind = config.at("kind");
  o.rate = config.at("rate");
  o.final_rate = config.value("final_rate", o.final_rate);
  o.total_steps = config.value("total_steps", o.total_steps);
  o.warmup_steps = config.value("warmup_steps", o.warmup_steps);
  o.warmup_rate = config.value("warmup_rate", o.warmup_rate);
  o.warmup_prefix = config.value("warmup_prefix", o.warmup_prefix);
  o.decay_steps = config.value("decay_steps", o.decay_steps);
  o.decay_factor = config.value("decay_factor", o.decay_factor);
  return o;
}

// timm's schedulers with and without warmup_prefix, and torch's LinearLR followed by CosineAnnealingLR.  The tolerance
// is for torch, which computes each rate from the previous one: 60 · 2^-53 and a margin.
TEST(Schedule, MatchesTimmAndTorch) {
  const auto golden = testing::read_golden(testing::fixture("optim/schedules.safetensors"));
  const auto cases = nlohmann::json::parse(golden.config);
  for (const auto& [name, config] : cases.items()) {
    const Schedule schedule(schedule_options_of(config));
    const Tensor expected = golden[name];
    const Tensor got = Tensor::empty(expected.shape(), DType::f64);
    for (int64_t t = 0; t < got.numel(); ++t) got.data<double>()[t] = schedule.rate(t);
    EXPECT_TRUE(testing::close(got, expected, 1e-16, 1e-13)) << name;
  }
}

TEST(Schedule, IsConstantBeyondItsEnd) {
  const Schedule cosine({.kind = "cosine", .rate = 1, .final_rate = 0.1, .total_steps = 10});
  EXPECT_DOUBLE_EQ(cosine.rate(0), 1);
  EXPECT_DOUBLE_EQ(cosine.rate(10), 0.1);
  EXPECT_DOUBLE_EQ(cosine.rate(1000), 0.1);
  const Schedule step({.kind = "step", .rate = 1, .final_rate = 0.05, .decay_steps = 2, .decay_factor = 0.1});
  EXPECT_DOUBLE_EQ(step.rate(3), 0.1);
  EXPECT_DOUBLE_EQ(step.rate(100), 0.05);
}

TEST(Schedule, AWarmUpOfAllStepsEndsAtTheFinalRate) {
  const Schedule schedule({.kind = "linear", .rate = 1, .total_steps = 4, .warmup_steps = 4});
  EXPECT_DOUBLE_EQ(schedule.rate(3), 0.75);
  EXPECT_DOUBLE_EQ(schedule.rate(4), 0);
}

TEST(Schedule, InvalidOptionsAreErrors) {
  auto message = [](const ScheduleOptions& options) -> std::string {
    try {
      const Schedule schedule(options);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_ERROR(message({.kind = "cosin"}), "schedule", "'cosin'");
  EXPECT_ERROR(message({.kind = "cosine"}), "schedule", "0");
  EXPECT_ERROR(message({.kind = "linear", .total_steps = 5, .warmup_steps = 6}), "schedule", "6");
  EXPECT_ERROR(message({.kind = "constant", .rate = -1}), "schedule", "-1");
  EXPECT_ERROR(message({.kind = "step"}), "schedule", "0 and 0.1");
}

// Ends and boundaries of every kind, with and without warm-up.
TEST(Schedule, RisesToItsRateAndFallsToItsFinalRate) {
  for (const std::string kind : {"cosine", "linear"}) {
    for (const int64_t warmup : {0, 1, 5}) {
      for (const bool prefix : {true, false}) {
        const Schedule schedule({.kind = kind,
                                 .rate = 1,
                                 .final_rate = 0.125,
                                 .total_steps = 20,
                                 .warmup_steps = warmup,
                                 .warmup_rate = 0.25,
                                 .warmup_prefix = prefix});
        const int64_t begin = prefix ? warmup : 0;
        for (int64_t step = 0; step < 25; ++step) {
          const double p = std::clamp(static_cast<double>(step - begin) / static_cast<double>(20 - begin), 0.0, 1.0);
          const double share = kind == "linear" ? 1 - p : (1 + std::cos(std::acos(-1.0) * p)) / 2;
          const double want = step < warmup ? 0.25 + 0.75 * static_cast<double>(step) / static_cast<double>(warmup)
                                            : 0.125 + 0.875 * share;
          EXPECT_NEAR(schedule.rate(step), want, 1e-14) << kind << ", " << warmup << ", " << step;
        }
      }
    }
  }
}

TEST(Schedule, StepsDecayAfterEachInterval) {
  const Schedule schedule(
      {.kind = "step", .rate = 1, .final_rate = 0.2, .warmup_steps = 2, .decay_steps = 3, .decay_factor = 0.5});
  const double want[] = {0, 0.5, 1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.2, 0.2};
  for (int64_t step = 0; step < 13; ++step) EXPECT_DOUBLE_EQ(schedule.rate(step), want[step]) << step;
  const Schedule constant({.kind = "constant", .rate = 0.5, .final_rate = 0.75, .warmup_steps = 2});
  EXPECT_DOUBLE_EQ(constant.rate(1), 0.25);
  EXPECT_DOUBLE_EQ(constant.rate(2), 0.75) << "the lower bound";
}

TEST(Schedule, RefusesRatesAndStepsOutOfRange) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const double rate : {-1.0, inf, std::nan("")}) {
    EXPECT_THROW(Schedule({.kind = "constant", .rate = rate}), Error);
    EXPECT_THROW(Schedule({.kind = "constant", .final_rate = rate}), Error);
    EXPECT_THROW(Schedule({.kind = "constant", .warmup_rate = rate}), Error);
  }
  EXPECT_THROW(Schedule({.kind = "constant", .warmup_steps = -1}), Error);
  EXPECT_THROW(Schedule({.kind = "step", .decay_steps = 1, .decay_factor = 0}), Error);
  EXPECT_THROW(Schedule({.kind = "step", .decay_steps = 1, .decay_factor = 1.5}), Error);
  EXPECT_NO_THROW(Schedule({.kind = "step", .decay_steps = 1, .decay_factor = 1}));
  EXPECT_NO_THROW(Schedule({.kind = "constant", .warmup_steps = 5})) << "a constant rate needs no total";
}

TEST(Schedule, DefaultsAreACosineWithoutWarmUp) {
  const ScheduleOptions options;
  EXPECT_EQ(options.kind, "cosine");
  EXPECT_EQ(options.rate, 1e-3);
  EXPECT_EQ(options.final_rate, 0);
  EXPECT_EQ(options.total_steps, 0);
  EXPECT_EQ(options.warmup_steps, 0);
  EXPECT_EQ(options.warmup_rate, 0);
  EXPECT_TRUE(options.warmup_prefix);
  EXPECT_EQ(options.decay_steps, 0);
  EXPECT_EQ(options.decay_factor, 0.1);
  EXPECT_EQ(Schedule({.rate = 0.5, .total_steps = 7}).options().total_steps, 7);
}

TEST(Schedule, ErrorsNameTheOption) {
  const auto message = [](const ScheduleOptions& options) {
    return testing::error_of([&] { const Schedule schedule(options); });
  };
  EXPECT_ERROR(message({.kind = "constant", .warmup_steps = -2}), "schedule", "-2");
  EXPECT_ERROR(message({.kind = "linear", .total_steps = -3}), "schedule", "-3");
  EXPECT_ERROR(message({.kind = "cosine", .total_steps = 5, .warmup_steps = 6}), "schedule", "6");
  EXPECT_ERROR(message({.kind = "constant", .final_rate = -2}), "schedule", "-2");
  EXPECT_ERROR(message({.kind = "step", .decay_steps = 3, .decay_factor = 1.5}), "schedule", "3 and 1.5");
  EXPECT_NO_THROW(Schedule({.kind = "linear", .total_steps = 5, .warmup_steps = 5}));
  EXPECT_NO_THROW(Schedule({.kind = "step", .total_steps = 0, .warmup_steps = 9, .decay_steps = 1}));
}

// Without warmup_prefix the intervals of the steps begin at step 0.
TEST(Schedule, StepsMayBeginBeforeTheWarmUp) {
  const Schedule schedule({.kind = "step",
                           .rate = 1,
                           .warmup_steps = 2,
                           .warmup_rate = 0.5,
                           .warmup_prefix = false,
                           .decay_steps = 3,
                           .decay_factor = 0.25});
  const double want[] = {0.5, 0.75, 1, 0.25, 0.25, 0.25, 0.0625};
  for (int64_t step = 0; step < 7; ++step) EXPECT_DOUBLE_EQ(schedule.rate(step), want[step]) << step;
}

}  // namespace
}  // namespace vitrail::optim
