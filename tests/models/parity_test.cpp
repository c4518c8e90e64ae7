// SPDX-License-Identifier: Apache-2.0
// The eager model against the reference implementation of every model fixture.
#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "tests/support/models.h"
#include "tests/support/paths.h"
#include "vitrail/models/load.h"

namespace vitrail::models {
namespace {

class Parity : public ::testing::TestWithParam<std::string> {};

TEST_P(Parity, LogitsAndTokensEqualTheReference) {
  const auto weights = testing::model_fixture(GetParam());
  const testing::Golden golden = testing::read_golden(weights.parent_path() / "golden.safetensors");
  const double tolerance = testing::parity_tolerance(GetParam());
  for (const std::string suffix : {"", "2"}) {  // input2 has another size: positions are interpolated
    if (!golden.has("input" + suffix)) continue;
    const VisionTransformer model = build_model(open_model(weights, testing::options_for(golden["input" + suffix])));
    const Tensor tokens = model.forward_features(golden["input" + suffix]);
    EXPECT_TRUE(testing::close(tokens, golden["tokens" + suffix], tolerance, tolerance)) << suffix;
    if (!golden.has("logits" + suffix)) continue;
    EXPECT_TRUE(testing::close(model.forward_head(tokens), golden["logits" + suffix], tolerance, tolerance)) << suffix;
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Parity, ::testing::ValuesIn(testing::model_fixtures()),
                         [](const auto& info) { return testing::test_name(info.param); });

// timm's forward_head(pre_logits=True).  The heads read one token each.
TEST(DistilledModel, PooledFeaturesAreTheMeanOfBothTokens) {
  const testing::Golden golden = testing::read_golden(testing::fixture("models/timm_distilled/golden.safetensors"));
  const Tensor tokens = golden["tokens"], pooled = testing::model_of("timm_distilled").pool(tokens);
  for (int64_t i = 0; i < pooled.numel(); ++i) {
    const int64_t row = i / pooled.size(1), column = i % pooled.size(1);
    const Tensor image = tokens.select(0, row);
    const double mean =
        (image.select(0, 0).select(0, column).item<double>() + image.select(0, 1).select(0, column).item<double>()) / 2;
    EXPECT_NEAR(pooled.select(0, row).select(0, column).item<double>(), mean, 1e-6);
  }
}

}  // namespace
}  // namespace vitrail::models
