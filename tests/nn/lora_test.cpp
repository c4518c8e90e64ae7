// SPDX-License-Identifier: Apache-2.0
// Low-rank parts of linear layers.  Their values and gradients against peft are in tests/models/lora_adapter_test.cpp.
#include "vitrail/nn/lora.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"
#include "vitrail/base/random.h"
#include "vitrail/models/vision_transformer.h"

namespace vitrail::nn {
namespace {

constexpr int64_t kWidth = 6;

models::VisionTransformer small_model() {
  RandomParams params(3);
  models::VisionTransformerConfig config{.img_size = {8, 8}, .patch_size = {4, 4}, .num_classes = 3};
  config.embed_dim = kWidth, config.depth = 2, config.num_heads = 2, config.mlp_ratio = 2;
  return {config, ParamSource(params)};
}

std::vector<std::string> parts_of(const Module& model) {
  std::vector<std::string> names;
  for (const NamedTensor& parameter : model.named_parameters()) {
    if (is_lora(parameter.name)) names.push_back(parameter.name);
  }
  return names;
}

// Draws the B of all parts, which are 0 at first.
void draw_parts(const Module& model) {
  for (const NamedTensor& parameter : model.named_parameters()) {
    if (parameter.name.ends_with("lora_B.weight"))
      parameter.tensor.copy_(Tensor::randn(parameter.tensor.shape(), random_key(parameter.name)));
  }
}

TEST(Lora, ChangesNothingAtFirst) {
  models::VisionTransformer model = small_model();
  const Tensor images = Tensor::randn({2, 3, 8, 8}, 1), before = model.forward(images);
  EXPECT_EQ(add_lora(model, {.rank = 2, .layers = "all"}, 0), 2 * 4);
  EXPECT_TRUE(testing::close(model.forward(images), before, 0));
}

TEST(Lora, AdaptsTheChosenLayers) {
  models::VisionTransformer fused = small_model(), all = small_model();
  EXPECT_EQ(add_lora(fused, {.rank = 2}, 0), 2);
  add_lora(all, {.rank = 2, .layers = "all"}, 0);
  EXPECT_EQ(parts_of(fused),
            (std::vector<std::string>{"blocks.0.attn.qkv.lora_A.weight", "blocks.0.attn.qkv.lora_B.weight",
                                      "blocks.1.attn.qkv.lora_A.weight", "blocks.1.attn.qkv.lora_B.weight"}));
  EXPECT_EQ(parts_of(all).size(), 16);
  EXPECT_EQ(fused.parameter("blocks.0.attn.qkv.lora_A.weight").shape(), (Shape{4, kWidth}));
  EXPECT_EQ(all.parameter("blocks.0.attn.qkv.lora_A.weight").shape(), (Shape{2, kWidth}));
}

// A's first half serves the queries and its second half the values; the other elements of B have no effect.
TEST(Lora, KeysOfAFusedProjectionStay) {
  models::VisionTransformer model = small_model();
  const Tensor images = Tensor::randn({2, 3, 8, 8}, 1), weight = model.parameter("blocks.0.attn.qkv.weight").clone();
  add_lora(model, {.rank = 2, .alpha = 3}, 0);
  draw_parts(model);
  const Tensor expected = model.forward(images);
  const auto rows = [](const Tensor& tensor, int64_t part) { return tensor.narrow(0, part * kWidth, kWidth); };
  const auto clear = [](const Tensor& part) { part.copy_(Tensor::zeros(part.shape())); };
  for (const char* block : {"0", "1"}) {
    const Tensor b = model.parameter(str("blocks.", block, ".attn.qkv.lora_B.weight"));
    clear(rows(b, 1));
    clear(rows(b, 0).narrow(1, 2, 2));
    clear(rows(b, 2).narrow(1, 0, 2));
  }
  EXPECT_TRUE(testing::close(model.forward(images), expected, 0));
  const std::vector<NamedTensor> merged = merge_lora(model.named_parameters(), 1.5);
  const Tensor adapted = std::ranges::find(merged, "blocks.0.attn.qkv.weight", &NamedTensor::name)->tensor;
  for (const int64_t part : {0, 2}) EXPECT_FALSE(testing::close(rows(adapted, part), rows(weight, part), 1e-3)) << part;
  EXPECT_TRUE(testing::close(rows(adapted, 1), rows(weight, 1), 0));
}

TEST(Lora, MergedWeightsComputeTheSame) {
  models::VisionTransformer model = small_model();
  const models::VisionTransformer merged = small_model();
  const LoraOptions options{.rank = 3, .alpha = 5, .layers = "all"};
  add_lora(model, options, 7);
  draw_parts(model);
  for (const NamedTensor& parameter : merge_lora(model.named_parameters(), options.scale()))
    merged.parameter(parameter.name).copy_(parameter.tensor);
  const Tensor images = Tensor::randn({2, 3, 8, 8}, 1);
  EXPECT_TRUE(testing::close(model.forward(images), merged.forward(images), 1e-5, 1e-5));
}

TEST(Lora, DropoutActsInTrainingAlone) {
  models::VisionTransformer model = small_model();
  add_lora(model, {.rank = 2, .dropout = 0.5}, 0);
  draw_parts(model);
  const Tensor images = Tensor::randn({2, 3, 8, 8}, 1), expected = model.forward(images);
  model.train();
  EXPECT_FALSE(testing::close(model.forward(images), expected, 1e-4));
  model.eval();
  EXPECT_TRUE(testing::close(model.forward(images), expected, 0));
}

TEST(Lora, RefusesAModelWithoutBlocks) {
  struct Empty : Module {
    std::string type() const override { return "Empty"; }
    void visit(Visitor&) override {}
  } empty;
  EXPECT_ERROR(testing::error_of([&] { add_lora(empty, {}, 0); }), "lora.layers", "none");
}

}  // namespace
}  // namespace vitrail::nn
