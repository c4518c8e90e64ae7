// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run/weight_update_internal.h"

#include <cmath>
#include <limits>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/train/training_fixture.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/nn/linear.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/loss.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::train {
namespace {

const ProcessGroup kAlone(nullptr);

// Three outputs of one input, whose gradients a test chooses.
class WeightUpdateTest : public ::testing::Test {
 protected:
  Recipe recipe_with(const std::vector<std::string>& settings = {}) {
    std::vector<std::string> all{"optimizer.name=sgd",
                                 "optimizer.momentum=0",
                                 "optimizer.weight_decay=0",
                                 "optimizer.lr=0.5",
                                 "schedule.name=constant",
                                 "schedule.warmup_epochs=0",
                                 "ema=null",
                                 "clip=0"};
    all.insert(all.end(), settings.begin(), settings.end());
    return parse_recipe(tiny_recipe("x"), "r.json", all);
  }

  // Adds the gradient of Σ g · w.
  void add_gradient(const std::vector<float>& g) {
    const Tensor products = ops::mul(layer_.weight().view({3}), Tensor::from<float>({3}, g));
    autograd::backward(ops::weighted_sum({ops::mean(products, 0)}, {3}));
  }
  std::vector<float> weights() const {
    const Tensor weight = layer_.weight();
    return {weight.data<float>(), weight.data<float>() + 3};
  }

  RandomParams params_{1};
  nn::Linear layer_{1, 3, false, ParamSource(params_)};
};

constexpr float kInfinite = std::numeric_limits<float>::infinity();

// A batch whose loss is not finite.
void accumulate_infinite(WeightUpdate& update, const std::string& problem = "") {
  update.accumulate(Tensor::full({}, kInfinite, DType::f32), {.images = 1, .weight = 1, .problem = problem}, {});
}

TEST_F(WeightUpdateTest, SubtractsTheGradientTimesTheRateAndClearsIt) {
  const Recipe recipe = recipe_with();
  WeightUpdate update(recipe, layer_, recipe.groups, 10, kAlone);
  const std::vector<float> before = weights();
  add_gradient({3, 0, 4});
  const StepResult result = update.apply(0, 0);
  EXPECT_TRUE(result.updated);
  EXPECT_EQ(result.learning_rate, 0.5);
  EXPECT_EQ(result.gradient_norm, 5);
  EXPECT_FLOAT_EQ(weights()[0], before[0] - 1.5f);
  EXPECT_EQ(weights()[1], before[1]);
  EXPECT_FLOAT_EQ(weights()[2], before[2] - 2);
  EXPECT_FALSE(autograd::grad_of(layer_.weight()).defined());
}

TEST_F(WeightUpdateTest, ClipsTheNormOfTheGradients) {
  const Recipe recipe = recipe_with({"clip=2.5"});
  WeightUpdate update(recipe, layer_, recipe.groups, 10, kAlone);
  const std::vector<float> before = weights();
  add_gradient({3, 0, 4});
  EXPECT_EQ(update.apply(0, 0).gradient_norm, 5) << "before clipping";
  EXPECT_NEAR(weights()[2], before[2] - 1, 1e-5);
}

TEST_F(WeightUpdateTest, ClipsTheGradientOfEachParameter) {
  const Recipe recipe = recipe_with({"clip=2.5", "clip_per_tensor=true"});
  nn::Linear layer(1, 3, true, ParamSource(params_));
  WeightUpdate update(recipe, layer, recipe.groups, 10, kAlone);
  const Tensor weight = layer.weight().clone(), bias = layer.parameter("bias").clone();
  const Tensor output = layer.forward(Tensor::full({1, 1}, 10)).view({3});  // gradients: 10 of each weight, 1 of a bias
  autograd::backward(ops::weighted_sum({ops::mean(output, 0)}, {3}));
  update.apply(0, 0);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(layer.weight().data<float>()[i], weight.data<float>()[i] - 0.5 * 2.5 / std::sqrt(3.0), 1e-5);
    EXPECT_NEAR(layer.parameter("bias").data<float>()[i], bias.data<float>()[i] - 0.5, 1e-6);
  }
}

// A quarter of the way along the cosine from 0.1 to 0.5, and beyond the end.
TEST_F(WeightUpdateTest, FollowsTheScheduleOfTheWeightDecay) {
  const Recipe recipe = recipe_with({"optimizer.weight_decay=0.1", "schedule.final_weight_decay=0.5", "epochs=2"});
  WeightUpdate update(recipe, layer_, recipe.groups, 10, kAlone);
  const double quarter = 0.5 + (0.1 - 0.5) * (1 + std::sqrt(0.5)) / 2;
  for (const auto& [step, decay] : {std::pair{0, 0.1}, {5, quarter}, {10, 0.3}, {20, 0.5}, {30, 0.5}}) {
    const std::vector<float> before = weights();
    add_gradient({0, 0, 0});
    update.apply(step, step);
    EXPECT_NEAR(weights()[1], before[1] * (1 - 0.5 * decay), 1e-7) << step;
  }
}

// The next step must not see what the skipped one has accumulated.
TEST_F(WeightUpdateTest, ASkippedStepChangesNothingAndLeavesNoGradient) {
  const Recipe recipe = recipe_with({"non_finite=skip", "ema=0.5"});
  WeightUpdate update(recipe, layer_, recipe.groups, 10, kAlone);
  const std::vector<float> before = weights();
  for (const bool rejected : {false, true}) {
    if (rejected) {
      accumulate_infinite(update);
      add_gradient({1, 1, 1});
    } else {
      add_gradient({1, kInfinite, 1});
    }
    const StepResult skipped = update.apply(2, 2);
    EXPECT_FALSE(skipped.updated);
    EXPECT_EQ(skipped.learning_rate, 0.5);
    EXPECT_EQ(weights(), before);
    EXPECT_FALSE(autograd::grad_of(layer_.weight()).defined());
  }
  EXPECT_TRUE(testing::close(update.ema()->average()[0].tensor, layer_.weight(), 0));
  add_gradient({2, 0, 0});
  EXPECT_TRUE(update.apply(3, 3).updated);
  EXPECT_FLOAT_EQ(weights()[0], before[0] - 1);
  EXPECT_EQ(weights()[1], before[1]);
}

TEST_F(WeightUpdateTest, AStepThatIsNotFiniteIsAnErrorThatSaysTheFirstReason) {
  const Recipe recipe = recipe_with();
  WeightUpdate update(recipe, layer_, recipe.groups, 10, kAlone);
  accumulate_infinite(update, "first");
  accumulate_infinite(update, "second");
  const std::string rejected = error_of([&] { update.apply(6, 0); });
  EXPECT_TRUE(contains(rejected, "step 7: expected a finite loss and finite gradients, got first (learning rate 0.5"))
      << rejected;
  add_gradient({kInfinite, 1, 1});
  const std::string infinite = error_of([&] { update.apply(7, 0); });
  EXPECT_TRUE(contains(infinite, "got first not finite: the gradient of weight [3, 1] (finite values 1")) << infinite;
  add_gradient({0, 1, 0});
  EXPECT_TRUE(update.apply(8, 0).updated) << "the reason was of one step";
}

// The average begins with the first step's weights; with decay d a later step keeps d of it.
TEST_F(WeightUpdateTest, TheAverageFollowsTheUpdatedWeights) {
  const Recipe recipe = recipe_with({"ema=0.75"});
  WeightUpdate update(recipe, layer_, recipe.groups, 10, kAlone);
  add_gradient({2, 0, 0});
  update.apply(0, 0);
  const float first = weights()[0];
  EXPECT_FLOAT_EQ(update.ema()->average()[0].tensor.data<float>()[0], first);
  add_gradient({4, 0, 0});
  update.apply(1, 1);
  EXPECT_FLOAT_EQ(weights()[0], first - 2);
  EXPECT_NEAR(update.ema()->average()[0].tensor.data<float>()[0], first - 0.5, 1e-6);
  EXPECT_EQ(WeightUpdate(recipe_with(), layer_, {}, 10, kAlone).ema(), nullptr);
}

TEST_F(WeightUpdateTest, TheScheduleFollowsTheEpochsOfTheRecipe) {
  Recipe recipe = recipe_with({"schedule.name=linear", "epochs=4"});
  WeightUpdate update(recipe, layer_, recipe.groups, 10, kAlone);
  EXPECT_DOUBLE_EQ(update.scheduled_rate(10), 0.375);
  recipe.epochs = 2;
  EXPECT_DOUBLE_EQ(update.scheduled_rate(10), 0.375) << "until it is told";
  update.update_schedule(10);
  EXPECT_DOUBLE_EQ(update.scheduled_rate(10), 0.25);
  add_gradient({1, 1, 1});
  EXPECT_DOUBLE_EQ(update.apply(3, 15).learning_rate, 0.125) << "of the scheduled step";
}

TEST(ScheduleOptions, AreTheRecipesInSteps) {
  const Recipe recipe =
      parse_recipe(tiny_recipe("x"), "r.json",
                   {"epochs=8", "optimizer.lr=0.5", "schedule.name=step", "schedule.final_lr=0.125",
                    "schedule.warmup_epochs=1.5", "schedule.warmup_lr=0.25", "schedule.warmup_prefix=false",
                    "schedule.decay_epochs=2.5", "schedule.decay_factor=0.75"});
  const optim::ScheduleOptions options = schedule_options(recipe, 5);
  EXPECT_EQ(options.kind, "step");
  EXPECT_EQ(options.rate, 0.5);
  EXPECT_EQ(options.final_rate, 0.125);
  EXPECT_EQ(options.total_steps, 40);
  EXPECT_EQ(options.warmup_steps, 8);  // 7.5
  EXPECT_EQ(options.warmup_rate, 0.25);
  EXPECT_FALSE(options.warmup_prefix);
  EXPECT_EQ(options.decay_steps, 13);  // 12.5
  EXPECT_EQ(options.decay_factor, 0.75);
}

TEST_F(WeightUpdateTest, TheGroupsAreTheRecipesWithoutTheFrozenOnes) {
  nn::Linear both{2, 3, true, ParamSource(params_)};
  const Recipe recipe = recipe_with({"optimizer.weight_decay=0.25", "optimizer.no_decay=[\"w*\"]"});
  WeightUpdate all(recipe, both, recipe.groups, 10, kAlone);
  ASSERT_EQ(all.optimizer().parameters().size(), 2u);
  for (const optim::Parameter& p : all.optimizer().parameters()) EXPECT_EQ(p.weight_decay, 0) << p.name;
  const Recipe decayed = recipe_with({"optimizer.weight_decay=0.25"});
  optim::GroupOptions without_bias = decayed.groups;
  without_bias.frozen = {"bias"};
  WeightUpdate frozen(decayed, both, without_bias, 10, kAlone);
  ASSERT_EQ(frozen.optimizer().parameters().size(), 1u);
  EXPECT_EQ(frozen.optimizer().parameters()[0].name, "weight");
  EXPECT_EQ(frozen.optimizer().parameters()[0].weight_decay, 0.25);
  EXPECT_FALSE(autograd::requires_grad(both.named_parameters()[1].tensor));
}

TEST_F(WeightUpdateTest, AnErrorTellsTheRateAndWhatMayHelp) {
  const Recipe recipe = recipe_with();
  WeightUpdate update(recipe, layer_, recipe.groups, 10, kAlone);
  accumulate_infinite(update);
  EXPECT_ERROR(error_of([&] { update.apply(0, 3); }), "step 1",
               "the loss is inf (learning rate 0.5; a lower one, a warm-up or \"clip\" may help; \"non_finite\": "
               "\"skip\" skips such steps)");
  EXPECT_TRUE(update.apply(1, 3).updated) << "the error is told once";
}

}  // namespace
}  // namespace vitrail::train
