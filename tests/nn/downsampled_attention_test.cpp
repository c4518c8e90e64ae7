// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/downsampled_attention.h"

#include "tests/nn/layer_fixture.h"
#include "vitrail/base/error.h"

namespace vitrail::nn {
namespace {

class DownsampledAttentionGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(DownsampledAttentionGolden, EqualsTheReference) {
  const LayerFixture fixture("downsampled_attention_" + GetParam());
  const DownsampledAttentionConfig config{.embedding_dim = fixture.get<int64_t>("embedding_dim"),
                                          .num_heads = fixture.get<int64_t>("num_heads"),
                                          .downsample_rate = fixture.get<int64_t>("downsample_rate")};
  for (const DType dtype : {DType::f32, DType::f64}) {
    const DownsampledAttention layer =
        build(fixture, dtype, [&](const ParamSource& params) { return DownsampledAttention(config, params); });
    EXPECT_TRUE(matches(layer.forward(fixture["input_query"].to(dtype), fixture["input_key"].to(dtype),
                                      fixture["input_value"].to(dtype)),
                        fixture["output"]));
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, DownsampledAttentionGolden, ::testing::Values("1", "2"), name_of_case);

TEST(DownsampledAttention, TheInternalWidthMustBeAMultipleOfTheHeads) {
  RandomParams params;
  const ParamSource source(params);
  EXPECT_THROW(DownsampledAttention({.embedding_dim = 24, .num_heads = 5}, source), Error);
  EXPECT_THROW(DownsampledAttention({.embedding_dim = 24, .num_heads = 8, .downsample_rate = 2}, source), Error);
  EXPECT_THROW(DownsampledAttention({.embedding_dim = 24, .num_heads = 1, .downsample_rate = 5}, source), Error);
  EXPECT_THROW(DownsampledAttention({.embedding_dim = 24, .num_heads = 1, .downsample_rate = 0}, source), Error);
  EXPECT_THROW(DownsampledAttention({.embedding_dim = 24, .num_heads = 0}, source), Error);
}

TEST(DownsampledAttention, RejectsShapesThatDoNotMatch) {
  RandomParams params;
  const DownsampledAttention layer({.embedding_dim = 24, .num_heads = 3, .downsample_rate = 2}, ParamSource(params));
  const auto zeros = [](const Shape& shape) { return Tensor::zeros(shape); };
  EXPECT_EQ(layer.forward(zeros({2, 5, 24}), zeros({2, 9, 24}), zeros({2, 9, 24})).shape(), (Shape{2, 5, 24}));
  EXPECT_THROW(layer.forward(zeros({2, 5, 24}), zeros({2, 9, 24}), zeros({2, 8, 24})), Error);
  EXPECT_THROW(layer.forward(zeros({2, 5, 24}), zeros({3, 9, 24}), zeros({3, 9, 24})), Error);
  EXPECT_THROW(layer.forward(zeros({2, 5, 12}), zeros({2, 9, 24}), zeros({2, 9, 24})), Error);
  EXPECT_THROW(layer.forward(zeros({5, 24}), zeros({9, 24}), zeros({9, 24})), Error);
}

}  // namespace
}  // namespace vitrail::nn
