// SPDX-License-Identifier: Apache-2.0
// Logit lens, token norms and head statistics of models against PyTorch (tools/golden/token_statistics.py).
#include "vitrail/analysis/token_statistics.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/models.h"
#include "tests/support/paths.h"
#include "vitrail/models/logit_lens.h"

namespace vitrail::models {
namespace {

class TokenStatistics : public ::testing::TestWithParam<std::string> {
 protected:
  const testing::Golden golden =
      testing::read_golden(testing::fixture("token_statistics/" + GetParam() + ".safetensors"));
  const VisionTransformer model = testing::model_of(GetParam());
  const Tensor image = testing::input_of(GetParam()).narrow(0, 0, 1).contiguous();
};

TEST_P(TokenStatistics, TheLensGivesTheHeadsLogitsAfterEachBlock) {
  const std::vector<Tensor> lens = logit_lens(model, image);
  ASSERT_EQ(std::ssize(lens), model.config().depth);
  for (size_t block = 0; block < lens.size(); ++block)
    EXPECT_TRUE(testing::close(lens[block].select(0, 0), golden["lens"].select(0, static_cast<int64_t>(block)), 1e-5));
  EXPECT_TRUE(testing::close(lens.back(), model.forward(image), 1e-6));
}

TEST_P(TokenStatistics, NormsAreThoseOfTheResidualStream) {
  const std::vector<Tensor> blocks = model.intermediates(image, {0, 1}, false);
  for (size_t block = 0; block < blocks.size(); ++block) {
    const std::vector<double> norms = analysis::token_norms(blocks[block].select(0, 0));
    const Tensor want = golden["norms"].select(0, static_cast<int64_t>(block));
    EXPECT_TRUE(testing::close(Tensor::from<double>({std::ssize(norms)}, norms), want, 0, 1e-5));
  }
}

TEST_P(TokenStatistics, HeadsHaveEntropyDistanceAndShareOfSpecialTokens) {
  const analysis::PatchGrid patches{model.grid_of(image.size(2), image.size(3)), model.config().patch_size};
  const std::vector<Tensor> maps = model.attention_maps(image);
  for (size_t block = 0; block < maps.size(); ++block) {
    std::vector<double> got;
    for (const auto& head : analysis::head_statistics(maps[block].select(0, 0), model.num_prefix_tokens(), patches))
      got.insert(got.end(), {head.entropy, head.distance, head.special});
    const Tensor want = golden["heads"].select(0, static_cast<int64_t>(block));
    EXPECT_TRUE(testing::close(Tensor::from<double>(want.shape(), got), want, 1e-6, 1e-5)) << block;
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, TokenStatistics,
                         ::testing::Values("timm_token", "timm_avg", "timm_avg_no_class_token", "timm_distilled",
                                           "timm_reg_tokens", "timm_map", "timm_non_square"),
                         [](const auto& info) { return testing::test_name(info.param); });

// All attention on one token, here the class token: no entropy, no distance.
TEST(HeadStatistics, OfAttentionToASpecialTokenAloneAreNumbers) {
  Tensor weights = Tensor::zeros({1, 3, 3});
  for (int64_t query = 0; query < 3; ++query) weights.data<float>()[query * 3] = 1;
  const analysis::HeadStatistics head = analysis::head_statistics(weights, 1, {{1, 2}, {4, 4}}).front();
  EXPECT_EQ(head.entropy, 0);
  EXPECT_EQ(head.distance, 0);
  EXPECT_EQ(head.special, 1);
}

TEST(LogitLens, NeedsAClassifier) {
  const VisionTransformer model = testing::model_of("timm_num_classes_0");
  EXPECT_ERROR(testing::error_of([&] { logit_lens(model, testing::input_of("timm_num_classes_0")); }), "logit lens",
               "one without");
}

}  // namespace
}  // namespace vitrail::models
