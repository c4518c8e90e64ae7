// SPDX-License-Identifier: Apache-2.0
// Which maps the options of `vitrail attention` select.  The weights are made up: each element tells its place.
#include "vitrail/pipeline/attention_view.h"

#include <gtest/gtest.h>

#include "tests/apps/cli_fixture.h"
#include "tests/support/errors.h"
#include "vitrail/analysis/attention_map.h"

namespace vitrail::pipeline {
namespace {

using testing::contains;
using testing::error_of;

// timm_token: 2 blocks, a class token and 4 × 4 patches of an input of 32 × 32 pixels.
constexpr int64_t kBlocks = 2, kHeads = 5, kTokens = 17;

float weight(int64_t block, int64_t head, int64_t from, int64_t to) {
  return static_cast<float>(((block * kHeads + head) * kTokens + from) * kTokens + to);
}

Tensor block_weights(int64_t block) {
  Tensor result = Tensor::empty({1, kHeads, kTokens, kTokens});
  float* to = result.data<float>();
  for (int64_t head = 0; head < kHeads; ++head) {
    for (int64_t from = 0; from < kTokens; ++from) {
      for (int64_t i = 0; i < kTokens; ++i) *to++ = weight(block, head, from, i);
    }
  }
  return result;
}

class AttentionView : public ::testing::Test {
 protected:
  AttentionMaps maps(const AttentionOptions& options) const {
    std::vector<Tensor> weights;
    const infer::Request request = attention_request(model, options);
    for (int64_t block = 0; block < kBlocks; ++block) {
      if (request.all_layers || block == request.layer) weights.push_back(block_weights(block));
    }
    return attention_maps(model, options, attended(weights));
  }
  AttendedImage attended(const std::vector<Tensor>& weights) const {
    return {"a folder/p\nhoto.png", photo.width, photo.height, {32, 32}, weights};
  }
  std::vector<std::string> labels(const AttentionOptions& options) const {
    std::vector<std::string> result;
    for (const AttentionMap& map : maps(options).maps) result.push_back(map.label);
    return result;
  }

  const Model model{testing::small_model()};
  const image::Image photo = image::make_image(64, 64, 3);
};

TEST_F(AttentionView, ALayerIsAnIndexFromTheStartOrTheEnd) {
  using Labels = std::vector<std::string>;
  EXPECT_EQ(labels({}), Labels{"layer 1"});
  EXPECT_EQ(labels({.layer = "0"}), Labels{"layer 0"});
  EXPECT_EQ(labels({.layer = "1"}), Labels{"layer 1"});
  EXPECT_EQ(labels({.layer = "-1"}), Labels{"layer 1"});
  EXPECT_EQ(labels({.layer = "-2"}), Labels{"layer 0"});
  EXPECT_EQ(labels({.layer = "all"}), (Labels{"layer 0", "layer 1"}));
  EXPECT_EQ(labels({.layer = "0", .head = "1"}), Labels{"layer 0 head 1"});
  EXPECT_EQ(labels({.layer = "all", .head = "0"}), (Labels{"layer 0 head 0", "layer 1 head 0"}));
  const Labels all = labels({.layer = "all", .head = "all"});
  ASSERT_EQ(all.size(), 10U);
  EXPECT_EQ(all[4], "layer 0 head 4");
  EXPECT_EQ(all[5], "layer 1 head 0");
  EXPECT_EQ(labels({.rollout = true}), Labels{"rollout"});
  for (const char* layer : {"2", "-3", "", "first", "1x", "99999999999999999999"}) {
    const std::string message = error_of([&] { maps({.layer = layer}); });
    EXPECT_TRUE(contains(message, "layer: expected all, or a block index from 0 to 1")) << message;
    EXPECT_THROW(attention_request(model, {.layer = layer}), Error) << layer;
  }
  for (const char* head : {"5", "-1", "", "first", "0x"}) {
    const std::string message = error_of([&] { maps({.head = head}); });
    EXPECT_TRUE(contains(message, "head: expected mean, all, or a head index from 0 to 4")) << message;
  }
}

TEST_F(AttentionView, OnlyNeededBlocksAreAskedFor) {
  EXPECT_EQ(attention_request(model, {}).output, infer::Output::attention);
  EXPECT_EQ(attention_request(model, {.layer = "0"}).layer, 0);
  EXPECT_FALSE(attention_request(model, {.layer = "0", .head = "all"}).all_layers);
  EXPECT_TRUE(attention_request(model, {.layer = "all"}).all_layers);
  EXPECT_TRUE(attention_request(model, {.rollout = true}).all_layers);
  EXPECT_TRUE(attention_request(model, {}, true).all_layers);
}

// The row of the class token, or of the patch that has the pixel of the query, without the column of the class token.
TEST_F(AttentionView, AMapIsTheRowOfTheTokenThatAttends) {
  for (const char* layer : {"0", "1", "all"}) {
    const AttentionMaps of_class = maps({.layer = layer, .head = "1"});
    EXPECT_EQ(of_class.attending, "the class token");
    EXPECT_FALSE(of_class.query.has_value());
    const AttentionMaps of_patch = maps({.layer = layer, .head = "1", .query = {40, 24}});
    EXPECT_EQ(of_patch.attending, "the patch at 40,24");
    ASSERT_TRUE(of_patch.query.has_value());
    EXPECT_EQ(*of_patch.query, (std::array<int64_t, 2>{1, 2}));
    for (size_t i = 0; i < of_class.maps.size(); ++i) {
      const int64_t block = std::string(layer) == "all" ? static_cast<int64_t>(i) : std::stoll(layer);
      ASSERT_EQ(of_class.maps[i].map.shape(), (Shape{4, 4}));
      for (int64_t patch = 0; patch < 16; ++patch) {
        EXPECT_EQ(of_class.maps[i].map.data<float>()[patch], weight(block, 1, 0, 1 + patch));
        EXPECT_EQ(of_patch.maps[i].map.data<float>()[patch], weight(block, 1, 1 + 4 + 2, 1 + patch));
      }
    }
  }
  const AttentionMaps mean = maps({.layer = "1"});
  EXPECT_EQ(mean.maps[0].map.data<float>()[3], weight(1, 2, 0, 4));  // the middle head
  EXPECT_THROW(maps({.query = {64, 0}}), Error);
}

// The patch of a query is counted along the rows of a grid that is wider or taller than it is high.
TEST(AttentionQuery, IsAPatchOfTheModelsGrid) {
  const Model model(testing::fixture("models/timm_non_square"));
  const auto& vit = model.config().vit;
  const int64_t rows = vit.img_size[0] / vit.patch_size[0], columns = vit.img_size[1] / vit.patch_size[1];
  ASSERT_NE(rows, columns);
  const int64_t tokens = 1 + rows * columns;
  Tensor weights = Tensor::empty({1, vit.num_heads, tokens, tokens});
  for (int64_t i = 0; i < weights.numel(); ++i) weights.data<float>()[i] = static_cast<float>(i);
  const image::Image photo = image::make_image(vit.img_size[1], vit.img_size[0], 3);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      const std::vector<int64_t> pixel{column * vit.patch_size[1] + vit.patch_size[1] / 2,
                                       row * vit.patch_size[0] + vit.patch_size[0] / 2};
      AttentionMaps maps;
      try {
        maps = attention_maps(model, {.head = "0", .query = pixel},
                              {"a.png", photo.width, photo.height, vit.img_size, {weights}});
      } catch (const Error&) {
        continue;  // cropped away
      }
      ASSERT_TRUE(maps.query.has_value());
      const int64_t token = 1 + (*maps.query)[0] * columns + (*maps.query)[1];
      ASSERT_EQ(maps.maps[0].map.shape(), (Shape{rows, columns}));
      for (int64_t patch = 0; patch < rows * columns; ++patch) {
        EXPECT_EQ(maps.maps[0].map.data<float>()[patch], static_cast<float>(token * tokens + 1 + patch));
      }
    }
  }
}

TEST_F(AttentionView, AFigureOfAllLayersAndHeadsHasARowForEachLayer) {
  const auto figure = [&](const AttentionOptions& options) {
    std::vector<Tensor> weights;
    for (int64_t block = 0; block < kBlocks; ++block) weights.push_back(block_weights(block));
    return attention_figure(model, options, photo, attended(weights), {});
  };
  const auto rows = [&](const AttentionOptions& options) { return figure(options).height / (224 + 20); };
  EXPECT_EQ(rows({.layer = "all", .head = "all"}), 2);  // a row has five heads
  EXPECT_EQ(rows({.layer = "0", .head = "all"}), 2);    // nearly a square: three and two
  EXPECT_EQ(rows({.layer = "all"}), 1);
}

// The whole figure: which maps, where they are, and what the two lines below say.
TEST_F(AttentionView, AFigureHasTheMapsTheQueryAndTheCaptionOfItsOptions) {
  Tensor logits = Tensor::zeros({10});
  logits.data<float>()[3] = 2;  // e² / (e² + 9) is 45.1 %
  struct Case {
    AttentionOptions options;
    std::string shown;
    int64_t columns = 0;
  };
  for (const auto& [options, shown, columns] :
       {Case{{}, "the class token; layer 1, mean over heads"},
        Case{{.layer = "0", .head = "3"}, "the class token; layer 0 head 3"},
        Case{{.layer = "all"}, "the class token; mean over heads, each map with its own scale"},
        Case{{.head = "all"}, "the class token; each map with its own scale"},
        Case{{.layer = "all", .head = "all"}, "the class token; each map with its own scale", kHeads},
        Case{{.layer = "all", .head = "1"}, "the class token; each map with its own scale"},
        Case{{.rollout = true}, "the class token; rollout over all layers"},
        Case{{.query = {40, 24}}, "the patch at 40,24; layer 1, mean over heads"},
        Case{{.query = {40, 24}, .rollout = true}, "the patch at 40,24; rollout over all layers"}}) {
    std::vector<Tensor> weights;
    const infer::Request request = attention_request(model, options);
    for (int64_t block = 0; block < kBlocks; ++block) {
      if (request.all_layers || block == request.layer) weights.push_back(block_weights(block));
    }
    for (const bool classified : {false, true}) {
      const image::Image got =
          attention_figure(model, options, photo, attended(weights), classified ? logits : Tensor());
      const AttentionMaps shown_maps = maps(options);
      const image::Image want =
          draw({.photo = photo,
                .region = image::visible_region(model.transform(), photo.width, photo.height),
                .maps = shown_maps.maps,
                .columns = columns,
                .query = shown_maps.query,
                .caption = {std::string("p\\x0ahoto.png") + (classified ? ": class 3 45.1 %" : ""),
                            "attention of " + shown}});
      EXPECT_EQ(got.width, want.width) << shown;
      EXPECT_TRUE(got.pixels == want.pixels) << shown;
    }
  }
}

// The mean of the rows of a model without class token, whose first patch is its first token.
TEST(AttentionWithoutAClassToken, IsTheMeanOverAllTokens) {
  const Model model(testing::fixture("models/timm_avg_no_class_token"));
  const int64_t tokens = 16;
  Tensor weights = Tensor::empty({1, 3, tokens, tokens});
  for (int64_t i = 0; i < weights.numel(); ++i) weights.data<float>()[i] = static_cast<float>(i);
  const AttentionMaps mean = attention_maps(model, {.head = "2"}, {"a.png", 16, 16, {16, 16}, {weights}});
  EXPECT_EQ(mean.attending, "mean over all tokens");
  EXPECT_FALSE(mean.query.has_value());
  ASSERT_EQ(mean.maps[0].map.shape(), (Shape{4, 4}));
  for (int64_t i = 0; i < tokens; ++i) {
    // Row 7 and a half of the head's sixteen.
    EXPECT_NEAR(mean.maps[0].map.data<float>()[i], 2 * 256 + 7.5 * 16 + static_cast<double>(i), 1e-3);
  }
  const AttentionMaps query =
      attention_maps(model, {.head = "0", .query = {8, 8}}, {"a.png", 16, 16, {16, 16}, {weights}});
  EXPECT_EQ(query.attending, "the patch at 8,8");
  EXPECT_EQ(*query.query, (std::array<int64_t, 2>{2, 2}));
  EXPECT_EQ(query.maps[0].map.data<float>()[0], static_cast<float>((4 * 2 + 2) * tokens));
}

TEST_F(AttentionView, ErrorsOfLayersAndHeadsNameWhatWasGiven) {
  EXPECT_ERROR(error_of([&] { maps({.layer = "x"}); }), "layer", "'x'");
  EXPECT_ERROR(error_of([&] { maps({.head = "7"}); }), "head", "'7'");
}

TEST_F(AttentionView, TheCheckRefusesLayersAndHeadsThatTheModelDoesNotHave) {
  for (const char* head : {"mean", "all", "0", "1"}) EXPECT_NO_THROW(check_attention(model, {.head = head})) << head;
  EXPECT_ERROR(error_of([&] { check_attention(model, {.head = "2"}); }), "head", "'2'");
  EXPECT_ERROR(error_of([&] { check_attention(model, {.layer = "2"}); }), "layer", "'2'");
}

// A method has only the fields that it reads.
TEST_F(AttentionView, TheCheckRefusesFieldsThatTheMethodDoesNotRead) {
  const auto refusal = [&](const AttentionOptions& options) {
    return error_of([&] { check_attention(model, options); });
  };
  EXPECT_EQ(attribution_method({.method = "rollout"}), nullptr);
  EXPECT_TRUE(attention_request(model, {.method = "rollout"}).all_layers);
  for (const AttributionMethod& method : attribution_methods()) {
    EXPECT_EQ(attribution_method({.method = method.name}), &method);
    const std::string got = std::string("method ") + method.name;
    EXPECT_ERROR(refusal({.layer = "0", .method = method.name}), "layer", got);
    EXPECT_ERROR(refusal({.head = "0", .method = method.name}), "head", got);
    EXPECT_ERROR(refusal({.query = {4, 4}, .method = method.name}), "query", got);
    EXPECT_ERROR(refusal({.rollout = true, .method = method.name}), "rollout", got);
    EXPECT_NO_THROW(check_attention(model, {.method = method.name, .attribution = {.target = "3"}}));
    EXPECT_ERROR(refusal({.method = method.name, .attribution = {.target = "cow"}}), "class", "'cow'");
  }
  EXPECT_ERROR(refusal({.layer = "0", .method = "rollout"}), "layer", "method rollout");
  EXPECT_ERROR(refusal({.attribution = {.target = "3"}}), "class", "method attention");
  EXPECT_ERROR(refusal({.method = "grad_cam", .attribution = {.baseline = "black"}}), "baseline", "method grad_cam");
  EXPECT_ERROR(refusal({.attribution = {.baseline = "black"}}), "baseline", "method attention");
}

TEST_F(AttentionView, AFigureOfAnAttributionNamesMethodClassAndSums) {
  const Tensor map = Tensor::randn({4, 4}, 1);
  AttendedImage image = attended({});
  image.attribution = {.target = 3, .map = map, .completeness = Completeness{1.25, 1.5}};
  const AttentionOptions options{.method = "integrated_gradients"};
  const image::Image got = attention_figure(model, options, photo, image, {});
  const image::Image want =
      draw({.photo = photo,
            .region = image::visible_region(model.transform(), photo.width, photo.height),
            .maps = {{"integrated_gradients", map}},
            .caption = {"p\\x0ahoto.png", "integrated_gradients of class 3; sum 1.25, difference of logits 1.5"}});
  EXPECT_TRUE(got.pixels == want.pixels);
  EXPECT_EQ(attention_maps(model, options, image).attending, "");
}

// The rollout is of all blocks in their order, and the mean over heads of each head.
TEST_F(AttentionView, RolloutAndMeanAreThoseOfTheWeights) {
  std::vector<Tensor> blocks;
  for (int64_t block = 0; block < kBlocks; ++block) blocks.push_back(block_weights(block).select(0, 0));
  const Tensor want = analysis::patch_attention(analysis::attention_rollout(blocks), 0, 1, {4, 4});
  const Tensor got = maps({.rollout = true}).maps.at(0).map;
  for (int64_t i = 0; i < 16; ++i) EXPECT_EQ(got.data<float>()[i], want.data<float>()[i]) << i;
  const AttentionOptions defaults;
  EXPECT_EQ(defaults.layer, "-1");
  EXPECT_EQ(defaults.head, "mean");
  EXPECT_FALSE(defaults.rollout);
}

}  // namespace
}  // namespace vitrail::pipeline
