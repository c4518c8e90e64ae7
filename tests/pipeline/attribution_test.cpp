// SPDX-License-Identifier: Apache-2.0
// Attributions of a class's logit against captum and the formulas of the papers' code (tools/golden/attribution.py).
#include "vitrail/pipeline/attribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/models.h"
#include "tests/support/paths.h"
#include "vitrail/analysis/patch_removal.h"
#include "vitrail/pipeline/differentiable_model.h"

namespace vitrail::pipeline {
namespace {

using testing::error_of;

double largest(const Tensor& map) {
  double result = 0;
  for (int64_t i = 0; i < map.numel(); ++i) result = std::max(result, std::fabs(double{map.data<float>()[i]}));
  return result;
}

// A model with its recorded twin, and the input of the fixture.
class Attributed {
 public:
  Attributed(const models::OpenedModel& opened, Tensor input)
      : model(opened, {.threads = 1}), recorded(opened), input_(std::move(input)) {}

  Attribution attribution(const std::string& method, const AttributionOptions& options) const {
    return attribute(*find_attribution(method), model, recorded.model(), input_, options);
  }

  const Model model;
  const DifferentiableModel recorded;

 private:
  Tensor input_;
};

Attributed fixture_of(const std::string& name) {
  return {models::open_model(testing::fixture("models/" + name)), testing::input_of(name).narrow(0, 0, 1).contiguous()};
}

// `tolerance` is relative to the largest element of each map.
void expect_maps(const Attributed& attributed, const testing::Golden& golden, double tolerance) {
  const auto config = nlohmann::json::parse(golden.config);
  const std::string target = str(config["target"].get<int64_t>());
  for (const AttributionMethod& method : attribution_methods()) {
    const std::string name = method.name;
    if (golden.has(name)) {
      const Attribution got = attributed.attribution(name, {.target = target});
      EXPECT_TRUE(testing::close(got.map, golden[name], tolerance * largest(golden[name]))) << name;
      EXPECT_FALSE(got.completeness.has_value()) << name;
      continue;
    }
    for (const char* baseline : {"mean", "black", "blurred"}) {
      if (!config["completeness"].contains(baseline)) continue;  // methods of many passes, of small models alone
      const Attribution got = attributed.attribution(name, {.target = target, .baseline = baseline});
      const Tensor want = golden[name + "." + baseline];
      EXPECT_TRUE(testing::close(got.map, want, tolerance * largest(want))) << name << " " << baseline;
      ASSERT_EQ(got.completeness.has_value(), name == "integrated_gradients");
      if (!got.completeness) continue;
      const auto sums = config["completeness"][baseline].get<std::array<double, 2>>();
      EXPECT_NEAR(got.completeness->sum, sums[0], tolerance);
      EXPECT_NEAR(got.completeness->difference, sums[1], tolerance);
    }
  }
}

class AttributionOfFixture : public ::testing::TestWithParam<std::string> {};

TEST_P(AttributionOfFixture, IsThatOfTheReference) {
  const testing::Golden golden = testing::read_golden(testing::fixture("attribution/" + GetParam() + ".safetensors"));
  expect_maps(fixture_of(GetParam()), golden, 2e-5);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, AttributionOfFixture,
                         ::testing::Values("timm_token", "timm_avg", "timm_avg_no_class_token", "timm_distilled",
                                           "timm_reg_tokens", "timm_map", "timm_map_prefix", "timm_qk_norm",
                                           "timm_non_square"),
                         [](const auto& info) { return testing::test_name(info.param); });

TEST(AttributionOfDeitTiny, IsThatOfTheReference) {
  VITRAIL_SKIP_WITH_SANITIZER();
  VITRAIL_NEED_ASSETS(assets);
  const testing::Golden golden = testing::read_golden(testing::fixture("attribution/deit_tiny.safetensors"));
  const auto config = nlohmann::json::parse(golden.config);
  const models::OpenedModel opened = models::open_model(assets / config["assets"].get<std::string>());
  const Model model(opened);
  const image::Image photo = model.read(assets / config["image"].get<std::string>());
  expect_maps({opened, image::apply(photo, model.transform()).unsqueeze(0)}, golden, 1e-3);
}

TEST(Attribution, IsByDefaultOfThePredictedClassAndFromTheMeanColor) {
  const Attributed attributed = fixture_of("timm_token");
  const Attribution got = attributed.attribution("integrated_gradients", {});
  const float* const logits = got.logits.data<float>();
  EXPECT_EQ(got.target, std::max_element(logits, logits + got.logits.numel()) - logits);
  const Attribution named =
      attributed.attribution("integrated_gradients", {.target = str(got.target), .baseline = "mean"});
  EXPECT_TRUE(testing::close(got.map, named.map, 0));
  ASSERT_TRUE(got.completeness.has_value());
  EXPECT_NEAR(got.completeness->sum, got.completeness->difference, 0.01 * std::fabs(got.completeness->difference));
}

TEST(Attribution, CallsItsProgressBeforeEachPass) {
  const Attributed attributed = fixture_of("timm_token");
  const Tensor input = testing::input_of("timm_token").narrow(0, 0, 1).contiguous();
  for (const AttributionMethod& method : attribution_methods()) {
    EXPECT_THROW(attribute(method, attributed.model, attributed.recorded.model(), input, {},
                           [](int64_t, int64_t) { throw Error("stop", "", ""); }),
                 Error)
        << method.name;
  }
}

TEST(Attribution, RefusesClassesAndModelsWithoutThem) {
  const Attributed attributed = fixture_of("timm_token");
  EXPECT_ERROR(error_of([&] { attributed.attribution("grad_cam", {.target = "10"}); }), "class", "'10'");
  const Model headless(testing::fixture("models/timm_num_classes_0"));
  EXPECT_TRUE(testing::contains(error_of([&] { check_attribution(headless, {}); }), "a model with a classifier"));
  EXPECT_EQ(find_attribution("rollout"), nullptr);
}

// The probability of the class while patches go, or come, in the order of leave_one_patch_out().
TEST(PatchCurves, AreThoseOfTheReference) {
  for (const char* name : {"timm_token", "timm_non_square"}) {
    const testing::Golden golden =
        testing::read_golden(testing::fixture(std::string("attribution/") + name + ".safetensors"));
    const auto target = nlohmann::json::parse(golden.config)["target"].get<int64_t>();
    const models::VisionTransformer model = testing::model_of(name);
    const Tensor image = testing::input_of(name).narrow(0, 0, 1).contiguous();
    const analysis::PatchGrid patches{model.grid_of(image.size(2), image.size(3)), model.config().patch_size};
    const analysis::ScoresOf probability = [&](const Tensor& images) {
      const Tensor logits = model.forward(images).contiguous();
      std::vector<float> result;
      for (int64_t row = 0; row < logits.size(0); ++row) {
        const float* const of_row = logits.data<float>() + row * logits.size(1);
        double sum = 0;
        for (int64_t i = 0; i < logits.size(1); ++i) sum += std::exp(double{of_row[i]} - double{of_row[target]});
        result.push_back(static_cast<float>(1 / sum));
      }
      return result;
    };
    const std::vector<int64_t> order = analysis::descending_patches(golden["leave_one_out.mean"]);
    const auto expect_curve = [&](const analysis::PatchCurve& curve, const Tensor& want) {
      EXPECT_TRUE(testing::close(Tensor::from<float>({std::ssize(curve.scores)}, curve.scores), want, 1e-5)) << name;
      double area = 0;
      for (int64_t i = 1; i < want.numel(); ++i)
        area += double{want.data<float>()[i]} + double{want.data<float>()[i - 1]};
      EXPECT_NEAR(curve.area, area / static_cast<double>(2 * (want.numel() - 1)), 1e-5);
    };
    expect_curve(patch_curve(image, analysis::mean_color(image), order, patches, probability), golden["deletion"]);
    expect_curve(patch_curve(analysis::blurred(image), image, order, patches, probability), golden["insertion"]);
  }
}

}  // namespace
}  // namespace vitrail::pipeline
