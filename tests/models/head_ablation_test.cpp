// SPDX-License-Identifier: Apache-2.0
// Ablated heads against hooks in timm's attention (tools/golden/head_ablation.py).
#include "vitrail/models/head_ablation.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/models.h"
#include "tests/support/paths.h"

namespace vitrail::models {
namespace {

class HeadAblation : public ::testing::TestWithParam<std::string> {};

TEST_P(HeadAblation, ChangesTheLogitsAsAHookInTimmDoes) {
  const testing::Golden golden = testing::read_golden(testing::fixture("head_ablation/" + GetParam() + ".safetensors"));
  const VisionTransformer model = testing::model_of(GetParam());
  // A difference of two logits, each within the tolerance of parity.
  EXPECT_TRUE(testing::close(head_ablation(model, testing::input_of(GetParam())), golden["change"], 1e-5));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, HeadAblation,
                         ::testing::Values("timm_token", "timm_avg", "timm_distilled", "timm_reg_tokens", "timm_map",
                                           "timm_qk_norm", "timm_scale_norms", "timm_non_square"),
                         [](const auto& info) { return testing::test_name(info.param); });

// Sets the values of all heads of a block to zero.
void clear_values(const VisionTransformer& model, int64_t block) {
  const std::string attention = "blocks." + std::to_string(block) + ".attn.";
  for (const nn::NamedTensor& parameter : model.named_parameters()) {
    const bool fused = parameter.name == attention + "qkv.weight" || parameter.name == attention + "qkv.bias";
    if (!fused && parameter.name != attention + "v_bias") continue;
    const int64_t width = model.config().embed_dim;
    Tensor values = parameter.tensor.narrow(0, parameter.tensor.size(0) - width, width);
    values.copy_(Tensor::zeros(values.shape()));
  }
}

// A head whose values are zero gives each token the same.  The models have rotary positions, a table for each block, or
// a bias of the scores: blocks in front of the head and behind it need their own.
TEST(HeadAblation, OfAHeadThatGivesEachTokenTheSameChangesNothing) {
  for (const std::string name : {"timm_rope_mixed", "timm_beit", "timm_beit_shared"}) {
    for (const int64_t block : {0, 1}) {
      const VisionTransformer model = testing::writable_model_of(name);
      clear_values(model, block);
      const Tensor images = testing::input_of(name), want = model.forward_features(images);
      for (const Tensor& tokens : model.ablate_heads(images, block))
        EXPECT_TRUE(testing::close(tokens, want, 1e-6)) << name << block;
      for (const Tensor& tokens : model.ablate_heads(images, 1 - block))
        EXPECT_FALSE(testing::close(tokens, want, 1e-3)) << name << block;
    }
  }
}

TEST(HeadAblation, CallsBackBeforeEachBlock) {
  std::vector<int64_t> blocks;
  const VisionTransformer model = testing::model_of("timm_token");
  head_ablation(model, testing::input_of("timm_token"), [&](int64_t done, int64_t total) {
    EXPECT_EQ(total, model.config().depth);
    blocks.push_back(done);
  });
  EXPECT_EQ(blocks, (std::vector<int64_t>{0, 1}));
}

TEST(HeadAblation, NeedsAClassifier) {
  const VisionTransformer model = testing::model_of("timm_num_classes_0");
  EXPECT_ERROR(testing::error_of([&] { head_ablation(model, testing::input_of("timm_num_classes_0")); }),
               "head ablation", "one without");
}

TEST(HeadAblation, RefusesABlockThatTheModelDoesNotHave) {
  const VisionTransformer model = testing::model_of("timm_token");
  const Tensor images = testing::input_of("timm_token");
  EXPECT_ERROR(testing::error_of([&] { model.ablate_heads(images, 2); }), "layer", "2");
  const std::vector<Tensor> last = model.ablate_heads(images, -1), second = model.ablate_heads(images, 1);
  ASSERT_EQ(last.size(), second.size());
  for (size_t head = 0; head < last.size(); ++head) EXPECT_TRUE(testing::close(last[head], second[head], 0));
}

}  // namespace
}  // namespace vitrail::models
