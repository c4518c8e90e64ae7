// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/semantic/semantic_model_internal.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/train/semantic_fixture.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/models/semantic/semantic_segmenter.h"
#include "vitrail/optim/parameter_groups.h"

namespace vitrail::train {
namespace {

// Provides the tensors of a fixture as parameters.
class HeadParams : public ParamProvider {
 public:
  explicit HeadParams(const testing::Golden& golden, DType dtype = DType::f32) : golden_(golden), dtype_(dtype) {}
  Tensor get(const std::string& path, const Shape& shape, const Initializer&) override {
    const Tensor& value = golden_[path];
    if (!(value.shape() == shape)) throw std::runtime_error(path + " has another shape in the fixture");
    return value.to(dtype_).clone();
  }
  bool has(const std::string& path) const override { return golden_.has(path); }
  void finish() override {}

 private:
  const testing::Golden& golden_;
  DType dtype_;
};

class MapLoss : public ::testing::Test {
 protected:
  const testing::Golden golden_ = testing::read_golden(testing::fixture("train/map_loss.safetensors"));
  HeadParams params_{golden_};
  TrainedLinearHead head_{5, 4, true, ParamSource(params_)};
  Tensor features_ = golden_["features"].to(DType::f32).clone();
  const Tensor labels_ = golden_["labels"].contiguous().view({-1});
  const MapLossOptions plain_{.size = {8, 7}};

  Tensor logits() const { return head_.forward({features_.view({2, 9, 5})}, 3, 3); }

  // Expects the loss and the gradients of a case.
  void expect_of_torch(const std::string& prefix, const MapLossOptions& options) {
    head_.requires_grad(true);
    autograd::set_requires_grad(features_, true);
    const Tensor loss = map_loss(logits(), labels_, options);
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
  EXPECT_TRUE(testing::close(logits(), golden_["logits"], 2e-6));
}

TEST_F(MapLoss, AndGradientsEqualPyTorchs) { expect_of_torch("", plain_); }

TEST_F(MapLoss, WithSmoothedLabelsAndClassWeightsEqualsPyTorchs) {
  MapLossOptions options = plain_;
  options.label_smoothing = 0.1;
  options.class_weights = golden_["class_weights"];
  expect_of_torch("smoothed.", options);
}

double largest(const Tensor& tensor) {
  const Tensor values = tensor.contiguous();
  double largest = 0;
  for (int64_t i = 0; i < values.numel(); ++i) largest = std::max(largest, std::abs(values.data<double>()[i]));
  return largest;
}

// In float64 up to the loss, whose logits are rounded to float32.
TEST(DptLoss, AndGradientsEqualPyTorchs) {
  const testing::Golden golden = testing::read_golden(testing::fixture("train/dpt_loss.safetensors"));
  models::SemanticConfig config;
  config.head = models::SemanticHead::dpt;
  config.neck = {.dim = 6, .hidden_dims = {2, 3, 4, 5}, .fusion_dim = 4};
  config.labels = {"a", "b", "c"};
  HeadParams params(golden, DType::f64);
  const std::unique_ptr<models::SemanticHeadModule> head = models::make_semantic_head(config, ParamSource(params));
  head->requires_grad(true);
  std::vector<nn::NamedTensor> trained = head->named_parameters();
  std::vector<Tensor> tokens;
  for (int i = 0; i < 4; ++i) {
    tokens.push_back(golden["tokens." + std::to_string(i)].clone());
    autograd::set_requires_grad(tokens.back(), true);
    trained.push_back({"tokens." + std::to_string(i), tokens.back()});
  }
  const Tensor loss =
      map_loss(head->forward(tokens, 3, 4), golden["labels"].contiguous().view({-1}), {.size = {13, 11}});
  EXPECT_TRUE(testing::close(loss, golden["loss"], 0, 1e-6));
  autograd::backward(loss);
  EXPECT_EQ(trained.size(), 58U + 4U);
  for (const nn::NamedTensor& each : trained) {
    const Tensor& want = golden["grad." + each.name];
    ASSERT_TRUE(autograd::grad_of(each.tensor).defined()) << each.name;
    EXPECT_TRUE(testing::close(autograd::grad_of(each.tensor), want, 1e-6 * largest(want))) << each.name;
  }
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

TEST(SemanticModel, ADptHeadHasTheNamesOfTheSavedModel) {
  const PreparedSegmenter prepared =
      prepare_segmenter(semantic_recipe(make_maps(2, 1), {"semantic.head=dpt", "model.depth=8"}), {"a", "b", "c"});
  const models::SemanticConfig saved =
      models::read_semantic_config(models::write_semantic_config(prepared.model.config()), "config.json");
  EXPECT_EQ(saved.layers, (std::vector<int64_t>{1, 3, 5, 7}));
  EXPECT_EQ(saved.neck.hidden_dims, (std::vector<int64_t>{4, 8, 16, 32}));
  EXPECT_EQ(saved.neck.fusion_dim, 5);
  RandomParams params(1);
  const models::SemanticSegmenter model(saved, ParamSource(params));
  const auto names = [](const nn::Module& module) {
    std::vector<std::string> names;
    for (const nn::NamedTensor& each : module.named_parameters())
      names.push_back(each.name + each.tensor.shape().to_string());
    return names;
  };
  EXPECT_EQ(names(prepared.model), names(model));
}

TEST(SemanticModel, ADptHeadNeedsAMapOfFourBlocks) {
  const Recipe recipe = semantic_recipe(make_maps(2, 1), {"semantic.head=dpt", "model.depth=3"});
  EXPECT_ERROR(error_of([&] { prepare_segmenter(recipe, {"a", "b"}); }), "semantic.head", "dpt");
}

// Blocks and embeddings have smaller rates than the head.
TEST(SemanticModel, RatesDecayFromTheHeadToTheEmbeddings) {
  PreparedSegmenter prepared = prepare_segmenter(semantic_recipe(make_maps(2, 1)), {"a", "b"});
  std::map<std::string, double> rates;
  for (const optim::Parameter& each :
       optim::parameter_groups(prepared.model, {.layer_decay = 0.5, .frozen = prepared.frozen}))
    rates[each.name] = each.rate_scale;
  EXPECT_EQ(rates.at("head.conv_seg.weight"), 1);
  EXPECT_EQ(rates.at("backbone.norm.weight"), 0.5);
  EXPECT_EQ(rates.at("backbone.blocks.1.attn.qkv.weight"), 0.5);
  EXPECT_EQ(rates.at("backbone.blocks.0.attn.qkv.weight"), 0.25);
  EXPECT_EQ(rates.at("backbone.patch_embed.proj.weight"), 0.125);
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
