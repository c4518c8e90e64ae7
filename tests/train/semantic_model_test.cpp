// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/semantic/semantic_model_internal.h"

#include <algorithm>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/train/semantic_fixture.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/optim/parameter_groups.h"

namespace vitrail::train {
namespace {

// Provides the tensors of a fixture as parameters.
class HeadParams : public ParamProvider {
 public:
  explicit HeadParams(const testing::Golden& golden) : golden_(golden) {}
  Tensor get(const std::string& path, const Shape& shape, const Initializer&) override {
    const Tensor& value = golden_[path];
    if (!(value.shape() == shape)) throw std::runtime_error(path + " has another shape in the fixture");
    return value.to(DType::f32).clone();
  }
  bool has(const std::string& path) const override { return golden_.has(path); }
  void finish() override {}

 private:
  const testing::Golden& golden_;
};

class MapLoss : public ::testing::Test {
 protected:
  const testing::Golden golden_ = testing::read_golden(testing::fixture("train/map_loss.safetensors"));
  HeadParams params_{golden_};
  TrainedLinearHead head_{5, 4, true, ParamSource(params_)};
  Tensor features_ = golden_["features"].to(DType::f32).clone();
  const Tensor labels_ = golden_["labels"].contiguous().view({-1});
  const MapLossOptions plain_{.size = {8, 7}};

  // Expects the loss and the gradients of a case.
  void expect_of_torch(const std::string& prefix, const MapLossOptions& options) {
    head_.requires_grad(true);
    autograd::set_requires_grad(features_, true);
    const Tensor loss = map_loss(head_.forward(features_), labels_, options);
    EXPECT_TRUE(testing::close(loss, golden_[prefix + "loss"], 0, 1e-6));
    autograd::backward(loss);
    EXPECT_TRUE(testing::close(autograd::grad_of(features_), golden_[prefix + "grad.features"], 1e-7));
    for (const nn::NamedTensor& parameter : head_.named_parameters()) {
      if (parameter.name.find("running") != std::string::npos) continue;
      EXPECT_TRUE(testing::close(autograd::grad_of(parameter.tensor), golden_[prefix + "grad." + parameter.name], 1e-6))
          << parameter.name;
    }
  }
};

TEST_F(MapLoss, LogitsAreThoseOfABatchNormAndAConvolution) {
  EXPECT_TRUE(testing::close(head_.forward(features_), golden_["logits"], 2e-6));
}

TEST_F(MapLoss, AndGradientsEqualPyTorchs) { expect_of_torch("", plain_); }

TEST_F(MapLoss, WithSmoothedLabelsAndClassWeightsEqualsPyTorchs) {
  MapLossOptions options = plain_;
  options.label_smoothing = 0.1;
  options.class_weights = golden_["class_weights"];
  expect_of_torch("smoothed.", options);
}

TEST(SemanticModel, HasTheNamesOfTheSavedModel) {
  const PreparedSegmenter prepared = prepare_segmenter(semantic_recipe(make_maps(2, 1)), {"a", "b", "c"});
  std::vector<std::string> head;
  for (const nn::NamedTensor& parameter : prepared.model.named_parameters()) {
    if (!parameter.name.starts_with("backbone.")) head.push_back(parameter.name);
  }
  EXPECT_EQ(head, (std::vector<std::string>{"head.bn.weight", "head.bn.bias", "head.bn.running_mean",
                                            "head.bn.running_var", "head.conv_seg.weight", "head.conv_seg.bias"}));
  EXPECT_EQ(prepared.model.parameter("head.conv_seg.weight").shape(), (Shape{3, 32, 1, 1}));
  EXPECT_FALSE(std::ranges::any_of(prepared.model.named_parameters(), [](const nn::NamedTensor& parameter) {
    return parameter.name.starts_with("backbone.head") || parameter.name.find("fc_norm") != std::string::npos;
  }));
}

TEST(SemanticModel, TrainsWhatTheRecipeSays) {
  const fs::path maps = make_maps(2, 1);
  const auto trained = [&](const std::vector<std::string>& settings) {
    PreparedSegmenter prepared = prepare_segmenter(semantic_recipe(maps, settings), {"a", "b"});
    std::vector<std::string> names;
    for (const optim::Parameter& parameter : optim::parameter_groups(prepared.model, {.frozen = prepared.frozen}))
      names.push_back(parameter.name);
    return names;
  };
  EXPECT_EQ(trained({"semantic.train_backbone=false"}),
            (std::vector<std::string>{"head.bn.weight", "head.bn.bias", "head.conv_seg.weight", "head.conv_seg.bias"}));
  EXPECT_EQ(trained({"semantic.train_backbone=false", "semantic.batch_norm=false"}),
            (std::vector<std::string>{"head.conv_seg.weight", "head.conv_seg.bias"}));
  const std::vector<std::string> all = trained({});
  EXPECT_TRUE(std::ranges::count(all, "backbone.blocks.0.attn.qkv.weight") == 1);
  EXPECT_FALSE(std::ranges::count(all, "head.bn.running_mean") == 1);
}

// Features of several blocks are beside each other.
TEST(SemanticModel, ReadsTheBlocksOfTheRecipe) {
  const fs::path maps = make_maps(2, 1);
  const auto model_of = [&](const char* layers) {
    return prepare_segmenter(semantic_recipe(maps, {std::string("semantic.layers=") + layers}), {"a", "b"}).model;
  };
  const Tensor image = Tensor::randn({1, 3, 32, 32}, 1);
  const autograd::NoGrad no_grad;
  const Tensor both = model_of("[0, 1]").features(image), first = model_of("[0]").features(image),
               last = model_of("[]").features(image);
  EXPECT_EQ(both.shape(), (Shape{1, 4, 4, 64}));
  EXPECT_TRUE(testing::close(both.narrow(3, 0, 32), first, 0));
  EXPECT_TRUE(testing::close(both.narrow(3, 32, 32), last, 0));
  EXPECT_FALSE(testing::close(first, last, 1e-3));
  EXPECT_ERROR(error_of([&] { model_of("[2]"); }), "semantic.layers", "2");
}

}  // namespace
}  // namespace vitrail::train
