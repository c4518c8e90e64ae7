// SPDX-License-Identifier: Apache-2.0
// Training compared with PyTorch: the same initial weights and batches, 50 steps of AdamW in f64.
// benchmarks/same_as_torch.py does the same in fp32 with a larger model.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/golden.h"
#include "tests/support/paths.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/models/model_config.h"
#include "vitrail/models/vision_transformer.h"
#include "vitrail/ops/loss.h"
#include "vitrail/optim/optimizer.h"

namespace vitrail::train {
namespace {

// Provides the fixture's initial weights ("before.NAME") as parameters.
class FixtureParams : public ParamProvider {
 public:
  explicit FixtureParams(const testing::Golden& golden) : golden_(golden) {}
  Tensor get(const std::string& path, const Shape& shape, const Initializer&) override {
    const Tensor& value = golden_["before." + path];
    if (!(value.shape() == shape)) throw std::runtime_error(path + " has another shape in the fixture");
    return value.to(DType::f64).clone();
  }
  bool has(const std::string& path) const override { return golden_.has("before." + path); }
  void finish() override {}

 private:
  const testing::Golden& golden_;
};

class TorchEquivalence : public ::testing::TestWithParam<std::string> {};

// f64 rounds to 1e-16 in each of 50 steps.  AdamW divides by √v, which can be small and then amplifies the rounding.
TEST_P(TorchEquivalence, FiftyStepsInF64GiveTheSameLossesAndWeights) {
  const testing::Golden golden = testing::read_golden(testing::fixture("train/steps_" + GetParam() + ".safetensors"));
  const auto config = nlohmann::json::parse(golden.config);
  const nlohmann::json file{{"architecture", "vit"}, {"model_args", config.at("model_args")}};
  FixtureParams params(golden);
  models::VisionTransformer model(models::parse_model_config(file.dump(), "", "fixture").vit, ParamSource(params));
  model.train();
  const auto optimizer =
      optim::make_optimizer({}, optim::parameter_groups(model, {.weight_decay = config.at("decay")}));
  const Tensor images = golden["images"].to(DType::f64), labels = golden["labels"], losses = golden["losses"];
  for (int64_t step = 0; step < losses.numel(); ++step) {
    const int64_t batch = step % images.size(0);
    const Tensor loss = ops::cross_entropy(model.forward(images.select(0, batch)), labels.select(0, batch),
                                           config.at("smoothing").get<double>());
    const double expected = losses.data<double>()[step];
    ASSERT_NEAR(loss.item<double>(), expected, 1e-8 * expected) << "step " << step;
    autograd::backward(loss);
    optimizer->step(config.at("rate"));
    optimizer->clear_gradients();
  }
  for (const nn::NamedTensor& p : model.named_parameters()) {
    EXPECT_TRUE(testing::close(p.tensor, golden["after." + p.name], 1e-10, 1e-8)) << p.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, TorchEquivalence, ::testing::Values("plain", "options"));

}  // namespace
}  // namespace vitrail::train
