// SPDX-License-Identifier: Apache-2.0
// Compares printed modules with PyTorch's output, and parameter names with timm's (tools/golden/printed_trees.py).
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/models/registry.h"
#include "vitrail/models/vision_transformer.h"

namespace vitrail::nn {
namespace {

std::string text_of(const std::string& name) {
  std::ifstream file(testing::fixture("nn/" + name + ".txt"));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// A registered architecture with changes, on the meta device, so that nothing is allocated.
std::string printed(const std::string& name, void (*change)(models::VisionTransformerConfig&)) {
  models::VisionTransformerConfig config = models::find_architecture(name)->config;
  change(config);
  RandomParams params(0, DType::f32, Device::meta);
  return models::VisionTransformer(config, ParamSource(params)).to_string() + "\n";
}

// Blocks with the parameters of jeonsworld's ViT-pytorch.
TEST(PrintedTree, AModuleListPrintsEqualBlocksOnce) {
  RandomParams params(0, DType::f32, Device::meta);
  ModuleList<Block> blocks("blocks");
  for (int64_t i = 0; i < 12; ++i) {
    blocks.emplace_back(
        BlockConfig{.attention = {.dim = 768, .num_heads = 12, .qkv_bias = true, .proj_drop = 0.1, .split = true},
                    .mlp_drop = 0.1},
        ParamSource(params, "blocks").child(i));
  }
  EXPECT_EQ(blocks.to_string() + "\n", text_of("module_list_003"));
}

TEST(PrintedTree, VitBaseEqualsTimms) {
  EXPECT_EQ(printed("vit_base_patch16_224", [](auto&) {}), text_of("vit_base"));
}

TEST(PrintedTree, BlocksThatDifferPrintOneByOne) {
  EXPECT_EQ(printed("vit_tiny_patch16_224",
                    [](models::VisionTransformerConfig& config) {
                      config.depth = 3;
                      config.drop_path_rate = 0.1;
                      config.drop_rate = 0.2;
                      config.init_values = 1e-5;
                      config.num_classes = 10;
                    }),
            text_of("vit_tiny_drop_path"));
}

TEST(PrintedTree, NormsAppearWhereTheyAreConfigured) {
  EXPECT_EQ(printed("vit_tiny_patch16_224",
                    [](models::VisionTransformerConfig& config) {
                      config.depth = 2;
                      config.qk_norm = true;
                      config.pre_norm = true;
                      config.global_pool = models::GlobalPool::avg;
                    }),
            text_of("vit_norms"));
}

TEST(NamedParameters, OfVitBaseEqualTimmsKeys) {
  RandomParams params(0, DType::f32, Device::meta);
  const models::VisionTransformer model(models::find_architecture("vit_base_patch16_224")->config, ParamSource(params));
  std::set<std::string> ours, theirs;
  for (const NamedTensor& p : model.named_parameters()) ours.insert(str(p.name, " ", p.tensor.shape()));
  std::istringstream lines(text_of("vit_base_keys"));
  for (std::string line; std::getline(lines, line);) theirs.insert(line);
  EXPECT_EQ(theirs.size(), 152u);
  EXPECT_EQ(ours, theirs);
}

}  // namespace
}  // namespace vitrail::nn
