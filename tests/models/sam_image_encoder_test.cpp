// SPDX-License-Identifier: Apache-2.0
// The image encoders of Segment Anything: the parts of the plain one, and what both give besides their output.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/models/small_sam.h"
#include "tests/support/golden.h"
#include "vitrail/models/sam/image_encoder.h"
#include "vitrail/models/sam/tiny_vit.h"
#include "vitrail/ops/convolution.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/relative_attention.h"

namespace vitrail::models {
namespace {

using kernels::Activation;
using testing::close;

TEST(RelativePositionTable, IsInterpolatedBetweenTheCentresOfItsRows) {
  const Tensor table = Tensor::from<float>({3, 2}, {0, 10, 1, 30, 4, 20});
  EXPECT_EQ(relative_position_table(table, 2).raw(), table.raw()) << "of that length already";
  EXPECT_TRUE(close(relative_position_table(table, 3),
                    Tensor::from<float>({5, 2}, {0, 10, 0.4, 18, 1, 30, 2.8, 24, 4, 20}), 1e-6));
  EXPECT_TRUE(close(relative_position_table(table, 1), Tensor::from<float>({1, 2}, {1, 30}), 1e-6));
}

TEST(SamParts, TheNeckIsTwoConvolutionsWithNorms) {
  SmallParams params(1e-3);
  const SamNeck neck(3, 4, params.source("neck"));
  const Tensor x = Tensor::randn({1, 2, 3, 3}, 1);
  const Tensor first = ops::linear(x, params["neck.0.weight"].view({4, 3}), {});
  const Tensor second = ops::linear(ops::unfold_3x3(normalised(params, "neck.1", first, 1e-6)),
                                    params["neck.2.weight"].view({4, 36}), {});
  EXPECT_TRUE(near(neck.forward(x), normalised(params, "neck.3", second, 1e-6)));
  EXPECT_EQ(neck.to_string(),
            "Sequential(\n"
            "  (0): Conv2d(3, 4, kernel_size=(1, 1), stride=(1, 1), bias=False)\n"
            "  (1): LayerNorm((4,), eps=1e-06, elementwise_affine=True)\n"
            "  (2): Conv2d(4, 4, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), bias=False)\n"
            "  (3): LayerNorm((4,), eps=1e-06, elementwise_affine=True)\n"
            ")");
}

// Both norms have the configured ε.
TEST(SamParts, ABlocksNormsHaveItsEpsilon) {
  SmallParams params;
  const SamEncoderConfig config = small_encoder();
  for (const SamBlockConfig& block_config : config.blocks) {
    params.tensors.clear();
    const SamBlock block(config, block_config, params.source());
    const SamAttention attention(config, block_config, params.source("attn"));
    const Tensor x = small_map({2, 5, 5, 6}, 3, 1e-2);
    const Tensor attended = ops::add(x, attention.forward(normalised(params, "norm1", x, 1e-4)));
    const Tensor hidden = linear(params, "mlp.lin1", normalised(params, "norm2", attended, 1e-4), Activation::gelu);
    EXPECT_TRUE(near(block.forward(x), ops::add(attended, linear(params, "mlp.lin2", hidden))));
  }
}

// The scale is that of the heads' width, and the tables have their axes.
TEST(SamParts, AttentionOfTheWholeGridHasTablesOfItsRowsAndColumns) {
  SmallParams params(0.7);
  const SamEncoderConfig config = small_encoder();
  const SamAttention attention(config, config.blocks[1], params.source());
  const Tensor x = Tensor::randn({1, 5, 5, 6}, 3);
  const Tensor qkv = linear(params, "qkv", x).view({1, 25, 18});
  const Tensor attended =
      ops::relative_self_attention(qkv, 2, 1 / std::sqrt(3.0), params["rel_pos_h"], params["rel_pos_w"], {5, 5});
  EXPECT_TRUE(near(attention.forward(x), linear(params, "proj", attended.view({1, 5, 5, 6}))));
}

TEST(SamParts, EncodersNameTheirOuterLayers) {
  SmallParams params;
  const SamImageEncoder plain(small_encoder(), params.source("plain"));
  EXPECT_EQ(plain.outer_layers(), (std::vector<std::string>{"patch_embed.proj", "neck.0", "neck.2"}));
  const SamTinyEncoder tiny(tiny_encoder(), params.source("tiny"));
  EXPECT_EQ(tiny.outer_layers(),
            (std::vector<std::string>{"patch_embed.seq.0.c", "patch_embed.seq.2.c", "neck.0", "neck.2"}));
}

// HQ-SAM reads the first block of the whole grid, or the second stage.
TEST(SamParts, TheIntermediateOutputIsThatOfAnInnerBlock) {
  SmallParams params(0.3);
  SamEncoderConfig config = small_encoder();
  config.blocks = {{.window = 2, .table_length = 3}, {.table_length = 9}, {.table_length = 9}};
  const SamImageEncoder plain(config, params.source("plain"));
  const Tensor images = Tensor::randn({1, 3, 10, 10}, 1);
  const SamTrunk all = plain.trunk_outputs(images);
  SamEncoderConfig shorter = config;
  shorter.blocks.pop_back();
  const SamImageEncoder two(shorter, params.source("plain"));
  EXPECT_TRUE(close(all.intermediate, two.trunk_outputs(images).output, 0));
  EXPECT_FALSE(close(all.output, all.intermediate, 1e-3));
  shorter.blocks.pop_back();
  EXPECT_FALSE(SamImageEncoder(shorter, params.source("plain")).trunk_outputs(images).intermediate.defined());
  const SamTinyEncoder tiny(tiny_encoder(), params.source("tiny"));
  const SamTrunk trunk = tiny.trunk_outputs(Tensor::randn({2, 3, 32, 32}, 2));
  EXPECT_EQ(trunk.intermediate.shape(), (Shape{2, 4, 4, 6}));
  EXPECT_EQ(trunk.output.shape(), (Shape{2, 4, 4, 6}));
  EXPECT_FALSE(close(trunk.output, trunk.intermediate, 1e-6));
}

}  // namespace
}  // namespace vitrail::models
