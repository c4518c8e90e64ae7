// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/downsampled_attention.h"

#include <algorithm>
#include <functional>

#include "tests/nn/layer_fixture.h"
#include "tests/nn/traced_layers.h"
#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/recorder.h"

namespace vitrail::nn {
namespace {

using testing::error_of;

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

// Whether the layer projects both sides and attends then.
bool projects_both_sides(const DownsampledAttention& layer, const Shape& query, const Shape& key) {
  const auto meta = [](const Shape& shape) { return Tensor::empty(shape, DType::f32, Device::meta); };
  const ops::Recorder recorder;
  layer.forward(meta(query), meta(key), meta(key));
  return std::ranges::any_of(recorder.operations(), [](const ops::RecordedOperation& recorded) {
    return recorded.kind() == ops::OpKind::attention;
  });
}

// Few tokens against many, both ways, with batches of their own and shared ones.
TEST(DownsampledAttention, FewTokensAbsorbTheProjectionsOfMany) {
  RandomParams params;
  const DownsampledAttention layer({.embedding_dim = 48, .num_heads = 4, .downsample_rate = 2}, ParamSource(params));
  for (const auto& [few_batch, many_batch] : {std::pair<int64_t, int64_t>{1, 1}, {3, 3}, {2, 1}, {1, 2}}) {
    const Tensor few = Tensor::randn({few_batch, 2, 48}, 1), few_values = Tensor::randn({few_batch, 2, 48}, 2);
    const Tensor many = Tensor::randn({many_batch, 100, 48}, 3), values = Tensor::randn({many_batch, 100, 48}, 4);
    EXPECT_EQ(projects_both_sides(layer, few.shape(), many.shape()), few_batch < many_batch);
    EXPECT_EQ(projects_both_sides(layer, many.shape(), few.shape()), few_batch < many_batch);
    Tensor traced[2];
    {
      const TraceScope scope([](const std::string&, const Tensor&) {});
      traced[0] = layer.forward(few, many, values);
      traced[1] = layer.forward(many, few, few_values);
    }
    // Sums of some 100 products of order 1.
    EXPECT_TRUE(testing::close(layer.forward(few, many, values), traced[0], 1e-5));
    EXPECT_TRUE(testing::close(layer.forward(many, few, few_values), traced[1], 1e-5));
  }
  EXPECT_TRUE(projects_both_sides(layer, {1, 20, 48}, {1, 100, 48}));
  EXPECT_TRUE(projects_both_sides(layer, {1, 2, 48}, {1, 30, 48}));
}

// Few keys, which absorb the projection of the output, and many; with shared tokens on the other side.
TEST(DownsampledAttention, ProjectedTokensGiveWhatForwardGives) {
  RandomParams params;
  const DownsampledAttention layer({.embedding_dim = 48, .num_heads = 4, .downsample_rate = 2}, ParamSource(params));
  for (const auto& [batch, shared] : {std::pair<int64_t, int64_t>{1, 1}, {3, 3}, {3, 1}, {1, 3}}) {
    for (const int64_t count : {2, 40}) {
      SCOPED_TRACE(str(batch, " samples of ", count, " tokens, ", shared, " of cells"));
      const Tensor tokens = Tensor::randn({batch, count, 48}, 1), values = Tensor::randn({batch, count, 48}, 2);
      const Tensor cells = Tensor::randn({shared, 100, 48}, 3), cell_values = Tensor::randn({shared, 100, 48}, 4);
      EXPECT_TRUE(testing::close(
          layer.forward_projected_keys(tokens, layer.project_key(cells), layer.project_value(cell_values)),
          layer.forward(tokens, cells, cell_values), 1e-5));
      EXPECT_TRUE(testing::close(layer.forward_projected_query(layer.project_query(cells), tokens, values),
                                 layer.forward(cells, tokens, values), 1e-5));
    }
  }
}

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

// Whether a recorded pass projects both sides and attends then: for these tokens, absorbing does not pay.
bool attends(const std::function<void()>& pass) {
  const ops::Recorder recorder;
  pass();
  return std::ranges::any_of(recorder.operations(), [](const ops::RecordedOperation& recorded) {
    return recorded.kind() == ops::OpKind::attention;
  });
}

Tensor meta(const Shape& shape) { return Tensor::empty(shape, DType::f32, Device::meta); }

// For a width C that is not reduced, and H heads: n queries absorb while H·n·2C < 2·C² + 2·n·C for each sample.
TEST_F(Layers, FewTokensAbsorbProjectionsWhereThatIsCheaper) {
  const DownsampledAttention layer({.embedding_dim = 4, .num_heads = 2}, source());
  struct Case {
    Shape query, key;
    bool plain;
  };
  for (const Case& one : {Case{{1, 3, 4}, {1, 64, 4}, false},
                          {{1, 4, 4}, {1, 64, 4}, true},  // equal costs
                          {{1, 3, 4}, {1, 63, 4}, true},  // not many tokens
                          {{1, 64, 4}, {1, 3, 4}, false},
                          {{1, 64, 4}, {1, 4, 4}, true},
                          {{1, 63, 4}, {1, 3, 4}, true},
                          {{3, 1, 4}, {1, 64, 4}, false},
                          {{3, 2, 4}, {1, 64, 4}, true},
                          {{1, 64, 4}, {3, 2, 4}, false},
                          {{1, 64, 4}, {3, 3, 4}, true},
                          {{1, 2, 4}, {3, 64, 4}, true},  // each sample has its own many tokens
                          {{3, 64, 4}, {1, 2, 4}, true}}) {
    EXPECT_EQ(attends([&] { layer.forward(meta(one.query), meta(one.key), meta(one.key)); }), one.plain)
        << one.query << one.key;
  }
  // One side is projected already: H·n·(C/r + C) < C²/r + 2·n·C/r.
  const auto projected = [&](const Shape& q, const Shape& key) {
    return attends([&] { layer.forward_projected_query(meta(q), meta(key), meta(key)); });
  };
  EXPECT_FALSE(projected({1, 64, 4}, {1, 1, 4}));
  EXPECT_TRUE(projected({1, 64, 4}, {1, 2, 4}));
  EXPECT_TRUE(projected({1, 63, 4}, {1, 1, 4}));
  EXPECT_TRUE(projected({3, 64, 4}, {1, 1, 4}));
}

TEST_F(Layers, TrainingAndWeightsWithoutDataUseThePlainFormula) {
  DownsampledAttention layer({.embedding_dim = 4, .num_heads = 2}, source());
  const auto plain = [&] {
    return attends([&] { layer.forward(meta({1, 1, 4}), meta({1, 64, 4}), meta({1, 64, 4})); });
  };
  EXPECT_FALSE(plain());
  layer.requires_grad(true);
  EXPECT_TRUE(plain());
  layer.requires_grad(false);
  EXPECT_FALSE(plain());
  layer.to(Device::meta);
  EXPECT_TRUE(plain());
  EXPECT_EQ(names_of(layer), (Names{"q_proj.weight", "q_proj.bias", "k_proj.weight", "k_proj.bias", "v_proj.weight",
                                    "v_proj.bias", "out_proj.weight", "out_proj.bias"}));
  EXPECT_EQ(layer.type(), "DownsampledAttention");
  EXPECT_ERROR(
      error_of([&] { DownsampledAttention({.embedding_dim = 24, .num_heads = 5, .downsample_rate = 2}, source()); }),
      "DownsampledAttention", "embedding_dim 24, downsample_rate 2, 5 heads");
}

}  // namespace
}  // namespace vitrail::nn
