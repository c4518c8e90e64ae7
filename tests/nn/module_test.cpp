// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/module.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/nn/traced_layers.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/nn/block.h"
#include "vitrail/nn/linear.h"
#include "vitrail/nn/mlp.h"
#include "vitrail/nn/patch_embed.h"

namespace vitrail::nn {
namespace {

using testing::error_of;

Block small_block(double drop = 0) {
  RandomParams params(1);
  return Block({.attention = {.dim = 8, .num_heads = 2, .proj_drop = drop}, .init_values = 1e-5, .mlp_drop = drop},
               ParamSource(params, "blocks.0"));
}

TEST(Module, NamedParametersWalkTheTreeInOrder) {
  std::vector<std::string> names;
  for (const NamedTensor& p : small_block().named_parameters()) names.push_back(p.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"norm1.weight", "norm1.bias", "attn.qkv.weight", "attn.proj.weight",
                                      "attn.proj.bias", "ls1.gamma", "norm2.weight", "norm2.bias", "mlp.fc1.weight",
                                      "mlp.fc1.bias", "mlp.fc2.weight", "mlp.fc2.bias", "ls2.gamma"}));
}

TEST(Module, CountsItsParameters) {
  EXPECT_EQ(small_block().num_parameters(),
            4 * 8 + 3 * 8 * 8 + 8 * 8 + 8 + 2 * 8 + 8 * 32 + 32 + 32 * 8 + 8);  // norms, qkv, proj, scales, fc1, fc2
}

TEST(Module, NamedModulesStartWithTheModuleItself) {
  const Block block = small_block();
  const auto modules = block.named_modules();
  EXPECT_EQ(modules[0].first, "");
  EXPECT_EQ(modules[0].second, &block);
  EXPECT_EQ(modules[1].first, "norm1");
  EXPECT_EQ(modules[3].first, "attn.qkv");
  EXPECT_EQ(modules[3].second->path(), "blocks.0.attn.qkv");
}

TEST(Module, AParameterIsFoundByItsPath) {
  const Block block = small_block();
  EXPECT_EQ(block.parameter("mlp.fc1.weight").shape(), (Shape{32, 8}));
  EXPECT_THROW(block.parameter("mlp.fc3.weight"), Error);
}

TEST(Module, TrainAndEvalReachEveryChild) {
  Block block = small_block(0.5);
  const auto all_are = [&](bool training) {
    for (const auto& [name, module] : block.named_modules()) {
      if (module->training() != training) return false;
    }
    return true;
  };
  EXPECT_TRUE(all_are(false)) << "a new module is in eval mode";
  const Tensor x = Tensor::randn({1, 3, 8}, 1);
  const Tensor eval = block.forward(x);
  block.train();
  EXPECT_TRUE(all_are(true));
  EXPECT_FALSE(testing::close(block.forward(x), eval, 1e-6));
  block.eval();
  EXPECT_TRUE(all_are(false));
  EXPECT_TRUE(testing::close(block.forward(x), eval, 0));
}

TEST(Module, ToADtypeConvertsEveryParameterAndTheForward) {
  Block block = small_block();
  const Tensor x = Tensor::randn({1, 3, 8}, 1);
  const Tensor f32 = block.forward(x);
  block.to(DType::f64);
  for (const NamedTensor& p : block.named_parameters()) EXPECT_EQ(p.tensor.dtype(), DType::f64) << p.name;
  EXPECT_TRUE(testing::close(block.forward(x.to(DType::f64)), f32, 1e-5));
  block.to(DType::bf16);
  const Tensor bf16 = block.forward(x.to(DType::bf16));
  EXPECT_EQ(bf16.dtype(), DType::bf16);
  EXPECT_TRUE(testing::close(bf16, f32, 0.05));  // a dozen roundings to 8 bits, of values of order 1
}

TEST(Module, ToADtypeKeepsRequiresGrad) {
  Block block = small_block();
  block.requires_grad(true);
  block.to(DType::f64);
  for (const NamedTensor& p : block.named_parameters()) EXPECT_TRUE(autograd::requires_grad(p.tensor)) << p.name;
  block.requires_grad(false);
  block.to(DType::f32);
  for (const NamedTensor& p : block.named_parameters()) EXPECT_FALSE(autograd::requires_grad(p.tensor)) << p.name;
}

TEST(Module, ToMetaKeepsShapesAndDropsData) {
  Block block = small_block();
  block.to(Device::meta);
  for (const NamedTensor& p : block.named_parameters()) EXPECT_TRUE(p.tensor.is_meta()) << p.name;
  EXPECT_EQ(block.forward(Tensor::empty({2, 3, 8}, DType::f32, Device::meta)).shape(), (Shape{2, 3, 8}));
  EXPECT_THROW(block.to(Device::cpu), Error);
}

TEST(Module, PrintsLeavesAsPyTorch) {
  RandomParams params;
  const ParamSource source(params);
  EXPECT_EQ(Linear(768, 3072, true, source).to_string(), "Linear(in_features=768, out_features=3072, bias=True)");
  EXPECT_EQ(Linear(3, 4, false, source).to_string(), "Linear(in_features=3, out_features=4, bias=False)");
  EXPECT_EQ(LayerNorm(768, 1e-6, source).to_string(), "LayerNorm((768,), eps=1e-06, elementwise_affine=True)");
  EXPECT_EQ(LayerNorm(8, 1e-12, source).to_string(), "LayerNorm((8,), eps=1e-12, elementwise_affine=True)");
  EXPECT_EQ(Dropout(0.1, "").to_string(), "Dropout(p=0.1, inplace=False)");
  EXPECT_EQ(Dropout(0, "").to_string(), "Dropout(p=0.0, inplace=False)");
  EXPECT_EQ(DropPath(0.1, "").to_string(), "DropPath(drop_prob=0.100)");
  EXPECT_EQ(PatchProjection({.embed_dim = 8}, source).to_string(),
            "Conv2d(3, 8, kernel_size=(16, 16), stride=(16, 16))");
  EXPECT_EQ(PatchProjection({.patch_size = {2, 4}, .embed_dim = 8, .bias = false}, source).to_string(),
            "Conv2d(3, 8, kernel_size=(2, 4), stride=(2, 4), bias=False)");
  EXPECT_EQ(ModuleList<Linear>("layers").to_string(), "ModuleList()");
}

TEST(Module, FloatsArePrintedAsInPython) {
  // repr() of each, from CPython.
  EXPECT_EQ(python_float(0), "0.0");
  EXPECT_EQ(python_float(1), "1.0");
  EXPECT_EQ(python_float(-0.5), "-0.5");
  EXPECT_EQ(python_float(0.0001), "0.0001");
  EXPECT_EQ(python_float(0.00001), "1e-05");
  EXPECT_EQ(python_float(1.5e-7), "1.5e-07");
  EXPECT_EQ(python_float(1e15), "1000000000000000.0");
  EXPECT_EQ(python_float(1e16), "1e+16");
  EXPECT_EQ(python_float(0.1), "0.1");
  EXPECT_EQ(python_float(std::nan("")), "nan");
  EXPECT_EQ(python_float(-INFINITY), "-inf");
}

// Weights of a mapped file must not be written to.
TEST(Module, ParametersThatMayNotBeWrittenBecomeCopiesForTraining) {
  const Tensor given = Tensor::randn({2, 3}, 1);
  struct Borrowed : ParamProvider {
    Tensor given;
    Tensor get(const std::string&, const Shape& shape, const Initializer&) override {
      return Tensor(Storage::borrow(given.raw(), 24, given.storage()), DType::f32, shape, contiguous_strides(shape), 0);
    }
    bool has(const std::string&) const override { return true; }
    void finish() override {}
  } provider;
  provider.given = given;
  Linear layer(3, 2, false, ParamSource(provider));
  layer.requires_grad(false);
  EXPECT_EQ(layer.parameter("weight").raw(), given.raw()) << "nothing is written to a frozen parameter";
  layer.requires_grad(true);
  EXPECT_NE(layer.parameter("weight").raw(), given.raw());
  EXPECT_FALSE(layer.parameter("weight").storage()->is_borrowed());
  EXPECT_TRUE(testing::close(layer.parameter("weight"), given, 0));
  EXPECT_TRUE(autograd::requires_grad(layer.parameter("weight")));
  const std::byte* const copy = layer.parameter("weight").raw();
  layer.requires_grad(true);
  EXPECT_EQ(layer.parameter("weight").raw(), copy) << "a second call keeps it";
}

TEST(Module, ListsPrintRunsOfEqualItems) {
  RandomParams params;
  const ParamSource source(params);
  ModuleList<Linear> list;
  for (const int64_t width : {2, 2, 2, 3, 4, 4}) list.emplace_back(width, 5, true, source.child(std::to_string(width)));
  EXPECT_EQ(list.to_string(),
            "ModuleList(\n"
            "  (0-2): 3 x Linear(in_features=2, out_features=5, bias=True)\n"
            "  (3): Linear(in_features=3, out_features=5, bias=True)\n"
            "  (4-5): 2 x Linear(in_features=4, out_features=5, bias=True)\n"
            ")");
  EXPECT_EQ(list.size(), 6u);
  EXPECT_EQ(list.named_parameters()[3].name, "1.bias");
}

TEST(Module, FloatsAtTheLimitsOfNotation) {
  const std::pair<double, const char*> texts[] = {
      {1e-4, "0.0001"},      {0.00099, "0.00099"}, {9.9e-5, "9.9e-05"},
      {-9.9e-5, "-9.9e-05"}, {-1e16, "-1e+16"},    {9999999999999998.0, "9999999999999998.0"},
      {-2, "-2.0"},          {1e-12, "1e-12"},     {1e100, "1e+100"},
      {INFINITY, "inf"},     {-INFINITY, "-inf"}};
  for (const auto& [value, text] : texts) EXPECT_EQ(python_float(value), text);
}

TEST_F(Layers, ModulesNameAParameterThatTheyLack) {
  const Mlp layer({.in_features = 2, .hidden_features = 3}, source());
  EXPECT_ERROR(error_of([&] { layer.parameter("fc3.bias"); }), "Mlp", "'fc3.bias'");
  std::vector<std::string> modules;
  for (const auto& [name, module] : layer.named_modules()) modules.push_back(name + ":" + module->type());
  EXPECT_EQ(modules, (Names{":Mlp", "fc1:Linear", "drop1:Dropout", "fc2:Linear", "drop2:Dropout"}));
  EXPECT_EQ(layer.num_parameters(), 2 * 3 + 3 + 3 * 2 + 2);
}

TEST_F(Layers, ListsKeepTheirItemsInOrder) {
  ModuleList<Linear> list("layers");
  for (const int64_t out : {3, 5, 4}) list.emplace_back(2, out, false, source());
  std::vector<int64_t> widths;
  for (const Linear& layer : list) widths.push_back(layer.out_features());
  EXPECT_EQ(widths, (std::vector<int64_t>{3, 5, 4}));
  EXPECT_EQ(list[1].out_features(), 5);
  EXPECT_EQ(names_of(list), (Names{"0.weight", "1.weight", "2.weight"}));
  EXPECT_EQ(list.path(), "layers");
}

}  // namespace
}  // namespace vitrail::nn
