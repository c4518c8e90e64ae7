// SPDX-License-Identifier: Apache-2.0
#include "vitrail/optim/optimizer.h"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/ops/linear.h"
#include "vitrail/optim/chunks_internal.h"

namespace vitrail::optim {
namespace {

void set_grad(const Tensor& leaf, const Tensor& gradient) { autograd::variable_of(leaf)->grad = gradient; }

Tensor leaf_of(const Tensor& value) {
  Tensor leaf = value.clone();
  autograd::set_requires_grad(leaf, true);
  return leaf;
}

OptimizerOptions optimizer_options_of(const nlohmann::json& config) {
  OptimizerOptions options{.kind = config.at("kind")};
  options.beta1 = config.value("beta1", options.beta1);
  if (config.contains("beta2")) options.beta2 = config.at("beta2").get<double>();
  if (config.contains("eps")) options.eps = config.at("eps").get<double>();
  options.momentum = config.value("momentum", options.momentum);
  options.nesterov = config.value("nesterov", options.nesterov);
  return options;
}

// Repeats the steps of a fixture in this dtype.  `scale` multiplies the gradients, and gradient_scale divides by it
// again.  `decay`: that of the parameters, which the scale of each step brings to 0.1.
std::unique_ptr<Optimizer> replay(const testing::Golden& golden, DType dtype, double scale = 1, double decay = 0.1) {
  const auto config = nlohmann::json::parse(golden.config);
  std::vector<Parameter> parameters{{"matrix", leaf_of(golden["before.matrix"].to(dtype)), decay, 1.0},
                                    {"vector", leaf_of(golden["before.vector"].to(dtype)), 0.0, 0.5}};
  auto optimizer = make_optimizer(optimizer_options_of(config), parameters);
  const int64_t steps = config.at("steps");
  for (int64_t step = 0; step < steps; ++step) {
    for (const Parameter& p : parameters) {
      const Tensor parts = golden["part." + p.name];
      const Tensor part = parts.select(0, step % parts.size(0)).contiguous();
      const Tensor gradient = Tensor::empty(p.tensor.shape(), DType::f64);
      const Tensor weight = p.tensor.to(DType::f64);
      for (int64_t i = 0; i < gradient.numel(); ++i) {
        gradient.data<double>()[i] = scale * (0.5 * weight.data<double>()[i] + part.data<double>()[i]);
      }
      set_grad(p.tensor, gradient.to(dtype));
    }
    const double rate = config.at("rate").get<double>() * (1 - static_cast<double>(step) / (2.0 * steps));
    optimizer->step(rate, 1 / scale, 0.1 / decay);
  }
  return optimizer;
}

class OptimizerRule : public ::testing::TestWithParam<const char*> {};

// 100 steps in f64, each with about 10 roundings of values of order 1: 100 · 10 · 2^-53 = 1e-13.
TEST_P(OptimizerRule, MatchesPyTorchOver100Steps) {
  const auto golden = testing::read_golden(testing::fixture(std::string("optim/") + GetParam() + ".safetensors"));
  const auto optimizer = replay(golden, DType::f64);
  EXPECT_EQ(optimizer->steps(), 100);
  for (const Parameter& p : optimizer->parameters()) {
    EXPECT_TRUE(testing::close(p.tensor, golden["after." + p.name], 0, 1e-12)) << p.name;
  }
  size_t buffers = 0;
  for (const nn::NamedTensor& entry : optimizer->state()) {
    if (!golden.has(entry.name)) continue;
    ++buffers;
    EXPECT_TRUE(testing::close(entry.tensor, golden[entry.name], 1e-14, 1e-12)) << entry.name;
  }
  EXPECT_EQ(buffers + 1, optimizer->state().size());
}

// An f32 step rounds the weight (|w| < 4) three times and its change (a few times the rate 0.01) about ten times:
// 100 · (3 · 4 + 10 · 0.05) · 2^-24 = 7.5e-5 if all errors had the same sign.  A tenth is allowed, because they vary.
TEST_P(OptimizerRule, MatchesPyTorchWithinRoundingInSinglePrecision) {
  const auto golden = testing::read_golden(testing::fixture(std::string("optim/") + GetParam() + ".safetensors"));
  const auto optimizer = replay(golden, DType::f32);
  for (const Parameter& p : optimizer->parameters()) {
    EXPECT_TRUE(testing::close(p.tensor, golden["after." + p.name], 7.5e-6)) << p.name;
  }
}

TEST_P(OptimizerRule, AppliesTheGradientScale) {
  const auto golden = testing::read_golden(testing::fixture(std::string("optim/") + GetParam() + ".safetensors"));
  const auto optimizer = replay(golden, DType::f64, 8);  // exact, because it is a power of two
  for (const Parameter& p : optimizer->parameters()) {
    EXPECT_TRUE(testing::close(p.tensor, golden["after." + p.name], 0, 1e-12)) << p.name;
  }
}

TEST_P(OptimizerRule, AppliesTheScaleOfTheWeightDecay) {
  const auto golden = testing::read_golden(testing::fixture(std::string("optim/") + GetParam() + ".safetensors"));
  const auto optimizer = replay(golden, DType::f64, 1, 0.4);
  for (const Parameter& p : optimizer->parameters()) {
    EXPECT_TRUE(testing::close(p.tensor, golden["after." + p.name], 0, 1e-12)) << p.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, OptimizerRule,
                         ::testing::Values("adamw", "adamw_betas", "sgd", "sgd_momentum", "sgd_nesterov", "lamb",
                                           "lion"),
                         [](const auto& info) { return std::string(info.param); });

// Two parameters of more than one chunk and a short one, with random gradients.
std::vector<Parameter> large_parameters(DType dtype = DType::f32) {
  std::vector<Parameter> parameters{{"a", leaf_of(Tensor::randn({50000}, 1, dtype)), 0.05},
                                    {"b", leaf_of(Tensor::randn({3}, 2, dtype)), 0},
                                    {"c", leaf_of(Tensor::randn({41, 1000}, 3, dtype)), 0.05}};
  for (size_t i = 0; i < parameters.size(); ++i) {
    set_grad(parameters[i].tensor, Tensor::randn(parameters[i].tensor.shape(), 10 + i, dtype));
  }
  return parameters;
}

std::vector<float> values_of(const Tensor& tensor) {
  return {tensor.data<float>(), tensor.data<float>() + tensor.numel()};
}

TEST(Optimizer, ResultsDoNotDependOnTheNumberOfThreads) {
  for (const char* kind : {"adamw", "sgd", "lamb", "lion"}) {
    std::vector<std::vector<float>> results;
    for (const int count : {1, 3}) {
      const ThreadCount threads(count);
      const auto optimizer = make_optimizer({.kind = kind}, large_parameters());
      for (int i = 0; i < 3; ++i) optimizer->step(1e-2);
      for (const Parameter& p : optimizer->parameters()) results.push_back(values_of(p.tensor));
    }
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(results[i], results[i + 3]) << kind;
  }
}

TEST(Optimizer, ContinuesBitForBitFromASavedState) {
  for (const char* kind : {"adamw", "sgd", "lamb", "lion"}) {
    const auto uninterrupted = make_optimizer({.kind = kind}, large_parameters());
    const auto first = make_optimizer({.kind = kind}, large_parameters());
    for (int i = 0; i < 5; ++i) uninterrupted->step(1e-2);
    for (int i = 0; i < 2; ++i) first->step(1e-2);
    std::vector<nn::NamedTensor> saved;
    for (const nn::NamedTensor& entry : first->state()) saved.push_back({entry.name, entry.tensor.clone()});
    const auto second = make_optimizer({.kind = kind}, large_parameters());
    for (size_t p = 0; p < 3; ++p) second->parameters()[p].tensor.copy_(first->parameters()[p].tensor);
    second->load_state(saved);
    EXPECT_EQ(second->steps(), 2);
    for (int i = 0; i < 3; ++i) second->step(1e-2);
    for (size_t p = 0; p < 3; ++p) {
      EXPECT_EQ(values_of(second->parameters()[p].tensor), values_of(uninterrupted->parameters()[p].tensor)) << kind;
    }
  }
}

TEST(Optimizer, DoesNotChangeAParameterWithoutAGradient) {
  std::vector<Parameter> parameters = large_parameters();
  autograd::clear_grad(parameters[2].tensor);
  const std::vector<float> before = values_of(parameters[2].tensor);
  for (const char* kind : {"adamw", "sgd", "lamb", "lion"}) {
    const auto optimizer = make_optimizer({.kind = kind}, parameters);
    optimizer->step(1e-2);
    EXPECT_EQ(values_of(parameters[2].tensor), before) << kind;
  }
}

TEST(Optimizer, TrainsALinearLayer) {
  Tensor weight = leaf_of(Tensor::randn({2, 4}, 1)), bias = leaf_of(Tensor::zeros({2}));
  const Tensor x = Tensor::randn({8, 4}, 2);
  const auto optimizer = make_optimizer({.kind = "adamw"}, {{"weight", weight}, {"bias", bias}});
  double first = 0, last = 0;
  for (int step = 0; step < 200; ++step) {
    const Tensor y = ops::linear(x, weight, bias);
    last = 0;
    for (int64_t i = 0; i < y.numel(); ++i) last += y.data<float>()[i] * y.data<float>()[i];
    if (step == 0) first = last;
    optimizer->clear_gradients();
    autograd::backward(y, y);  // the gradient of |y|² / 2
    optimizer->step(0.05);
  }
  EXPECT_LT(last, first * 1e-4);
}

using testing::error_of;

TEST(OptimizerState, LoadingAWrongStateListsAllDifferencesAndChangesNothing) {
  const auto optimizer = make_optimizer({.kind = "adamw"}, large_parameters());
  optimizer->step(1e-2);
  std::vector<nn::NamedTensor> state = optimizer->state();
  const std::vector<float> before = values_of(state[1].tensor);
  for (nn::NamedTensor& entry : state) entry.tensor = entry.tensor.clone();
  state[0].tensor = Tensor::from<int64_t>({}, {77});
  state[2].tensor = Tensor::zeros({4});
  state[3].name = "exp_avg.other";
  const std::string message = error_of([&] { optimizer->load_state(state); });
  EXPECT_NE(message.find("'exp_avg.b': expected f32 [3], got f32 [4]"), std::string::npos) << message;
  EXPECT_NE(message.find("'exp_avg.c' is missing"), std::string::npos) << message;
  EXPECT_NE(message.find("'exp_avg.other' is not expected"), std::string::npos) << message;
  EXPECT_EQ(optimizer->steps(), 1);
  EXPECT_EQ(values_of(optimizer->state()[1].tensor), before);
}

TEST(Optimizer, InvalidOptionsAndParametersAreErrors) {
  const std::vector<Parameter> good = large_parameters();
  auto message = [&](const OptimizerOptions& options, const std::vector<Parameter>& parameters) {
    return error_of([&] { make_optimizer(options, parameters); });
  };
  EXPECT_ERROR(message({.kind = "adam"}, good), "optimizer", "'adam'");
  EXPECT_ERROR(message({.beta2 = 1.0}, good), "optimizer", "1");
  EXPECT_ERROR(message({.eps = 0.0}, good), "optimizer", "0");
  EXPECT_ERROR(message({.kind = "sgd", .momentum = 0, .nesterov = true}, good), "optimizer", "momentum 0");
  EXPECT_ERROR(message({}, {good[0], good[0]}), "optimizer", "'a' twice");
  EXPECT_ERROR(message({}, {{"h", leaf_of(Tensor::zeros({2}, DType::bf16))}}), "optimizer", "bf16 for 'h'");
  EXPECT_ERROR(message({}, {{"t", Tensor::zeros({2, 3}).transpose(0, 1)}}), "optimizer", "a strided view for 't'");
  const auto optimizer = make_optimizer({}, good);
  set_grad(good[1].tensor, Tensor::zeros({4}));
  EXPECT_ERROR(error_of([&] { optimizer->step(1); }), "optimizer", "f32 [4]");
  EXPECT_EQ(optimizer->steps(), 0);
}

TEST(OptimizerState, ATensorThatOccursTwiceIsRefused) {
  const auto optimizer = make_optimizer({.kind = "lion"}, large_parameters());
  std::vector<nn::NamedTensor> state = optimizer->state();
  for (nn::NamedTensor& entry : state) entry.tensor = entry.tensor.clone();
  state.push_back(state[1]);
  const std::string message = error_of([&] { optimizer->load_state(state); });
  EXPECT_NE(message.find("optimizer state: 1 difference\n  'exp_avg.a' occurs twice"), std::string::npos) << message;
}

// PyTorch's and timm's.
TEST(Optimizer, DefaultsAreThoseOfEachRule) {
  const std::pair<OptimizerOptions, OptimizerOptions> pairs[] = {
      {{.kind = "adamw"}, {.kind = "adamw", .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}},
      {{.kind = "lamb"}, {.kind = "lamb", .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-6}},
      {{.kind = "lion"}, {.kind = "lion", .beta1 = 0.9, .beta2 = 0.99}},
      {{.kind = "sgd"}, {.kind = "sgd", .momentum = 0.9, .nesterov = false}}};
  for (const auto& [defaults, stated] : pairs) {
    std::vector<std::vector<float>> results;
    for (const OptimizerOptions& options : {defaults, stated}) {
      const auto optimizer = make_optimizer(options, large_parameters());
      for (int i = 0; i < 3; ++i) optimizer->step(1e-2);
      for (const Parameter& p : optimizer->parameters()) results.push_back(values_of(p.tensor));
    }
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(results[i], results[i + 3]) << defaults.kind;
  }
}

TEST(Optimizer, AStridedGradientHasTheEffectOfItsCopy) {
  for (const char* kind : {"adamw", "sgd", "lamb", "lion"}) {
    std::vector<std::vector<float>> results;
    const Tensor gradient = Tensor::randn({7, 5}, 2).transpose(0, 1);
    for (const Tensor& given : {gradient, gradient.contiguous()}) {
      const Tensor weight = leaf_of(Tensor::randn({5, 7}, 1));
      set_grad(weight, given);
      make_optimizer({.kind = kind}, {{"w", weight, 0.1}})->step(0.1);
      results.push_back(values_of(weight));
    }
    EXPECT_EQ(results[0], results[1]) << kind;
  }
}

TEST(Optimizer, ClearedGradientsChangeNothing) {
  const std::vector<Parameter> parameters = large_parameters();
  const auto optimizer = make_optimizer({}, parameters);
  optimizer->clear_gradients();
  for (const Parameter& p : parameters) EXPECT_FALSE(autograd::grad_of(p.tensor).defined()) << p.name;
  const std::vector<float> before = values_of(parameters[0].tensor);
  optimizer->step(1);
  EXPECT_EQ(values_of(parameters[0].tensor), before);
  EXPECT_EQ(optimizer->steps(), 1);
}

TEST(Optimizer, ZeroRatesAndScalesStandStill) {
  for (const char* kind : {"adamw", "sgd", "lamb", "lion"}) {
    for (const auto& [rate, scale] : {std::pair{0.0, 1.0}, {0.1, 0.0}}) {
      const Tensor weight = leaf_of(Tensor::randn({5}, 1));
      const std::vector<float> before = values_of(weight);
      set_grad(weight, Tensor::randn({5}, 2));
      make_optimizer({.kind = kind}, {{"w", weight, 0.1, scale}})->step(rate);
      EXPECT_EQ(values_of(weight), before) << kind;
    }
  }
  const Tensor weight = leaf_of(Tensor::zeros({2}));
  EXPECT_THROW(make_optimizer({}, {{"w", weight, -0.1}}), Error);
  EXPECT_THROW(make_optimizer({}, {{"w", weight, 0.1, -1}}), Error);
  EXPECT_THROW(make_optimizer({.beta1 = -0.1}, {{"w", weight}}), Error);
  EXPECT_THROW(make_optimizer({.kind = "sgd", .momentum = 1}, {{"w", weight}}), Error);
}

// One step from w = 1, with the gradient 0.5, the rate 0.2, half of it for this parameter, and the weight decay 0.5.
TEST(Optimizer, AStepIsThatOfTheFormulas) {
  const auto step = [](const OptimizerOptions& options, int steps = 1, double decay = 0.5) {
    const Tensor weight = leaf_of(Tensor::full({1}, 1, DType::f64));
    const auto optimizer = make_optimizer(options, {{"w", weight, decay, 0.5}});
    for (int i = 0; i < steps; ++i) {
      set_grad(weight, Tensor::full({1}, 2, DType::f64));
      optimizer->step(0.2, 0.25);
    }
    return weight.data<double>()[0];
  };
  const double rate = 0.1, g = 0.5, kept = 1 - rate * 0.5;
  // Adam's first step is g / (|g| + ε): m̂ = g, v̂ = g².
  EXPECT_NEAR(step({.kind = "adamw", .eps = 0.1}), kept - rate * g / (g + 0.1), 1e-12);
  EXPECT_NEAR(step({.kind = "sgd", .momentum = 0}), 1 - rate * (g + 0.5), 1e-12);
  EXPECT_NEAR(step({.kind = "sgd", .momentum = 0.75}), 1 - rate * (g + 0.5), 1e-12);
  EXPECT_NEAR(step({.kind = "sgd", .momentum = 0.75, .nesterov = true}), 1 - rate * (1 + 0.75) * (g + 0.5), 1e-12);
  const double first = 1 - rate * (g + 0.5), second = g + 0.5 * first;
  EXPECT_NEAR(step({.kind = "sgd", .momentum = 0.75}, 2), first - rate * (0.75 * (g + 0.5) + second), 1e-12);
  EXPECT_NEAR(step({.kind = "lion"}), kept - rate, 1e-12);
  // LAMB's u = g / (|g| + ε) + λ w, scaled by |w| / |u|: the step has the length of the weight.
  EXPECT_NEAR(step({.kind = "lamb", .eps = 0.1}), 1 - rate, 1e-12);
  EXPECT_NEAR(step({.kind = "lamb", .eps = 0.1}, 1, 0), 1 - rate * g / (g + 0.1), 1e-12) << "no ratio without decay";
}

TEST(OptimizerState, HasItsStepAndItsBuffers) {
  const auto names = [](const OptimizerOptions& options) {
    const auto optimizer = make_optimizer(
        options, {{"a", leaf_of(Tensor::zeros({2, 3}))}, {"b", leaf_of(Tensor::zeros({4}, DType::f64))}});
    std::vector<std::string> list;
    for (const nn::NamedTensor& entry : optimizer->state()) {
      list.push_back(entry.name);
      if (entry.name == "step") continue;
      const bool is_a = entry.name.ends_with(".a");
      EXPECT_EQ(entry.tensor.shape(), (is_a ? Shape{2, 3} : Shape{4}));
      EXPECT_EQ(entry.tensor.dtype(), is_a ? DType::f32 : DType::f64);
    }
    return list;
  };
  const std::vector<std::string> adam{"step", "exp_avg.a", "exp_avg.b", "exp_avg_sq.a", "exp_avg_sq.b"};
  EXPECT_EQ(names({.kind = "adamw"}), adam);
  EXPECT_EQ(names({.kind = "lamb"}), adam);
  EXPECT_EQ(names({.kind = "lion"}), (std::vector<std::string>{"step", "exp_avg.a", "exp_avg.b"}));
  EXPECT_EQ(names({.kind = "sgd"}), (std::vector<std::string>{"step", "momentum_buffer.a", "momentum_buffer.b"}));
  EXPECT_EQ(names({.kind = "sgd", .momentum = 0}), (std::vector<std::string>{"step"}));
  const auto optimizer = make_optimizer({}, {{"a", leaf_of(Tensor::zeros({2}))}});
  EXPECT_EQ(optimizer->state()[0].tensor.item<int64_t>(), 0);
  optimizer->step(1);
  EXPECT_EQ(optimizer->state()[0].tensor.item<int64_t>(), 1);
  EXPECT_EQ(optimizer->state()[0].tensor.dtype(), DType::i64);
  EXPECT_EQ(optimizer->state()[1].tensor.storage(), optimizer->state()[1].tensor.storage()) << "not a copy";
}

TEST(Optimizer, ErrorsNameTheOptionAndTheParameter) {
  const Tensor weight = leaf_of(Tensor::zeros({2}));
  const auto message = [&](const OptimizerOptions& options) {
    return error_of([&] { make_optimizer(options, {{"w", weight}}); });
  };
  for (const double value : {-0.5, 1.0, 1.5}) {
    EXPECT_EQ(message({.beta1 = value}), str("optimizer: expected beta1 in [0, 1), got ", value));
    EXPECT_EQ(message({.beta2 = value}), str("optimizer: expected beta2 in [0, 1), got ", value));
    EXPECT_EQ(message({.momentum = value}), str("optimizer: expected momentum in [0, 1), got ", value));
  }
  EXPECT_ERROR(message({.eps = 9e-38}), "optimizer", "9e-38");
  EXPECT_NO_THROW(make_optimizer({.beta1 = 0, .beta2 = 0.0, .eps = 1e-37, .momentum = 0}, {{"w", weight}}));
  EXPECT_ERROR(error_of([&] { make_optimizer({}, {{"w", weight, -0.5, 2}}); }), "optimizer", "-0.5 and 2 for 'w'");
  EXPECT_ERROR(error_of([&] { make_optimizer({}, {{"w", weight, 0.5, -2}}); }), "optimizer", "0.5 and -2 for 'w'");
  EXPECT_NO_THROW(make_optimizer({}, {{"w", weight, 0, 0}}));
  const auto optimizer = make_optimizer({}, {{"w", weight}});
  set_grad(weight, Tensor::zeros({2}, DType::f64));
  EXPECT_ERROR(error_of([&] { optimizer->step(1); }), "optimizer", "f64 [2]");
}

// Chunks are of one parameter and of 16384 elements at most.
TEST(Chunks, CoverEachParameter) {
  const std::vector<Chunk> chunks = make_chunks({{"a", Tensor::zeros({16384})},
                                                 {"none", Tensor::zeros({0})},
                                                 {"b", Tensor::zeros({3, 16385})},
                                                 {"c", Tensor::zeros({})}});
  std::vector<std::array<int64_t, 3>> got;
  for (const Chunk& chunk : chunks) got.push_back({static_cast<int64_t>(chunk.parameter), chunk.first, chunk.count});
  EXPECT_EQ(got, (std::vector<std::array<int64_t, 3>>{
                     {0, 0, 16384}, {2, 0, 16384}, {2, 16384, 16384}, {2, 32768, 16384}, {2, 49152, 3}, {3, 0, 1}}));
}

}  // namespace
}  // namespace vitrail::optim
