// SPDX-License-Identifier: Apache-2.0
// The parts of Segment Anything, each against the reference's outputs and its own definition.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "tests/support/golden.h"
#include "tests/support/sam_fixture.h"
#include "vitrail/models/sam/sam.h"
#include "vitrail/nn/copied_params.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/sam/image_input_internal.h"

namespace vitrail::models {
namespace {

class SamModules : public ::testing::TestWithParam<const char*> {};

TEST_P(SamModules, TheEncodersOutputEqualsTheReference) {
  const testing::SamFixture fixture = testing::sam_fixture(GetParam());
  const Sam sam = load_sam(fixture.model);
  const sam::InputFrame frame = sam::input_frame(sam.config());
  const Tensor input = Tensor::empty({1, 3, frame.size, frame.size});
  frame.write(frame.resized(fixture.image), input.data<float>());
  const Tensor& want = fixture.golden["embedding"];
  const Tensor got = sam.image_encoder().forward(input).select(0, 0).permute({2, 0, 1});
  EXPECT_TRUE(testing::close(got, want, testing::kSamTolerance * testing::largest(want)));
}

// Prompts of any kind, decoded from the reference's embedding.
TEST_P(SamModules, MasksAndScoresEqualTheReference) {
  const testing::SamFixture fixture = testing::sam_fixture(GetParam());
  const Sam sam = load_sam(fixture.model);
  if (sam.config().decoder.high_quality) return;  // needs features of the image encoder
  const Tensor image = fixture.golden["embedding"].permute({1, 2, 0}).contiguous().unsqueeze(0);
  const SamPromptEncoder& encoder = sam.prompt_encoder();
  const auto [height, width] = sam::input_frame(sam.config()).sides(fixture.image.height, fixture.image.width);
  const double across = static_cast<double>(width) / static_cast<double>(fixture.image.width);
  const double down = static_cast<double>(height) / static_cast<double>(fixture.image.height);
  for (size_t i = 0; i < fixture.prompts.size(); ++i) {
    const sam::Prompt& prompt = fixture.prompts[i];
    std::vector<double> coordinates;
    std::vector<SamPoint> kinds;
    const auto add = [&](double x, double y, SamPoint kind) {
      coordinates.insert(coordinates.end(), {x * across, y * down});
      kinds.push_back(kind);
    };
    for (const sam::Point& point : prompt.points) {
      add(point.x, point.y, point.label == 1 ? SamPoint::inside : SamPoint::outside);
    }
    if (prompt.box) {
      add(prompt.box->x0, prompt.box->y0, SamPoint::top_left);
      add(prompt.box->x1, prompt.box->y1, SamPoint::bottom_right);
    } else if (!prompt.points.empty()) {
      add(0, 0, SamPoint::padding);
    }
    const Tensor points =
        encoder.points(Tensor::from<double>({1, static_cast<int64_t>(kinds.size()), 2}, coordinates), kinds);
    const Tensor dense =
        prompt.mask_logits.defined() ? encoder.mask(prompt.mask_logits.unsqueeze(0).unsqueeze(0)) : encoder.no_mask();
    const SamMaskDecoder& decoder = sam.mask_decoder();
    const SamMasks masks = decoder.forward(ops::add(image, dense), encoder.grid_positions(), decoder.tokens(points));
    const Tensor logits = masks.logits.select(0, 0), iou = masks.iou.select(0, 0);
    const Tensor &want = fixture.golden["logits_" + std::to_string(i)],
                 &scores = fixture.golden["iou_" + std::to_string(i)];
    const int64_t first = prompt.multimask ? 1 : 0, count = want.size(0);
    EXPECT_TRUE(testing::close(logits.narrow(0, first, count), want, testing::kSamTolerance * testing::largest(want)))
        << i;
    EXPECT_TRUE(testing::close(iou.narrow(0, first, count), scores, testing::kSamTolerance * testing::largest(scores)))
        << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, SamModules,
                         ::testing::Values("padded_windows", "exact_windows", "global", "no_qkv_bias", "transformers",
                                           "mobile", "high_quality"),
                         [](const auto& info) { return std::string(info.param); });

// Points are at the centre of their pixel: [sin(2π p G) | cos(2π p G)] of p in −1 … 1, and the embedding of their kind.
TEST(SamPromptEncoder, PointsAreTheirPositionAndTheirKind) {
  const Sam sam = load_sam(testing::sam_fixture("padded_windows").model);
  const Tensor gauss = sam.parameter("prompt_encoder.pe_layer.positional_encoding_gaussian_matrix").contiguous();
  const int64_t half = gauss.size(1);
  const double size = 80;
  const std::vector<std::pair<SamPoint, std::string>> kinds{{SamPoint::padding, "not_a_point_embed"},
                                                            {SamPoint::outside, "point_embeddings.0"},
                                                            {SamPoint::inside, "point_embeddings.1"},
                                                            {SamPoint::top_left, "point_embeddings.2"},
                                                            {SamPoint::bottom_right, "point_embeddings.3"}};
  for (const auto& [kind, name] : kinds) {
    const Tensor got = sam.prompt_encoder().points(Tensor::from<double>({1, 1, 2}, {12, 33}), {kind}).contiguous();
    const Tensor own = sam.parameter("prompt_encoder." + name + ".weight").contiguous();
    const double x = 2 * 12.5 / size - 1, y = 2 * 33.5 / size - 1;
    for (int64_t i = 0; i < half; ++i) {
      const double phase = 2 * std::numbers::pi * (x * gauss.data<float>()[i] + y * gauss.data<float>()[half + i]);
      const double at = kind == SamPoint::padding ? 0 : 1;
      EXPECT_NEAR(got.data<float>()[i], own.data<float>()[i] + at * std::sin(phase), 1e-5) << name;
      EXPECT_NEAR(got.data<float>()[half + i], own.data<float>()[half + i] + at * std::cos(phase), 1e-5) << name;
    }
  }
}

// What is behind the trunk, as the neck, does not change it; each other tensor of the encoder does.
TEST(SamTrunkDigest, IsThatOfTheEncoderWithoutItsNeck) {
  const Sam sam = load_sam(testing::sam_fixture("padded_windows").model);
  const std::string digest = sam_trunk_digest(sam);
  EXPECT_EQ(digest.size(), 64u);
  EXPECT_EQ(sam_trunk_digest(load_sam(testing::sam_fixture("padded_windows").model)), digest);
  for (const auto& [name, changes] :
       {std::pair("image_encoder.neck.0.weight", false), std::pair("mask_decoder.iou_token.weight", false),
        std::pair("image_encoder.pos_embed", true), std::pair("image_encoder.blocks.1.norm1.bias", true)}) {
    std::map<std::string, Tensor> replaced{{name, Tensor::full(sam.parameter(name).shape(), 0.5)}};
    nn::CopiedParams params(sam, replaced);
    const Sam changed(sam.config(), ParamSource(params));
    EXPECT_EQ(sam_trunk_digest(changed) != digest, changes) << name;
  }
}

struct DecoderInputs {
  Tensor image, positions, tokens;
};

DecoderInputs inputs_of(const Sam& sam, int64_t prompts) {
  const SamConfig& config = sam.config();
  const int64_t grid = config.encoder.grid, dim = config.decoder.dim;
  return {Tensor::randn({1, grid, grid, dim}, 1), sam.prompt_encoder().grid_positions(),
          sam.mask_decoder().tokens(Tensor::randn({prompts, 3, dim}, 2))};
}

TEST(SamMaskDecoder, WithKnownProjectionsComputesTheSame) {
  const Sam sam = load_sam(testing::sam_fixture("padded_windows").model);
  const SamMaskDecoder& decoder = sam.mask_decoder();
  for (const int64_t prompts : {1, 3}) {
    const DecoderInputs in = inputs_of(sam, prompts);
    const SamMasks want = decoder.forward(in.image, in.positions, in.tokens);
    const Tensor projections = decoder.project(in.image, in.positions);
    ASSERT_EQ(projections.size(0), 3);
    const SamMasks got = decoder.forward(in.image, in.positions, in.tokens, {}, projections);
    EXPECT_TRUE(testing::close(got.logits, want.logits, testing::kSamTolerance * testing::largest(want.logits)));
    EXPECT_TRUE(testing::close(got.iou, want.iou, testing::kSamTolerance * testing::largest(want.iou)));
    EXPECT_EQ(got.logits.size(0), prompts);
    // The three are different, so that one in the place of another is seen.
    for (const auto& [a, b] : {std::pair{0, 1}, {0, 2}, {1, 2}}) {
      EXPECT_FALSE(testing::close(projections.select(0, a), projections.select(0, b), 1e-2)) << a << b;
    }
  }
}

// The score's token is the first, then those of the masks, then the prompts.
TEST(SamMaskDecoder, TokensAreInTheirOrder) {
  const Sam sam = load_sam(testing::sam_fixture("padded_windows").model);
  const SamMaskDecoder& decoder = sam.mask_decoder();
  const int64_t dim = sam.config().decoder.dim, masks = sam.config().decoder.mask_tokens;
  const Tensor prompts = Tensor::randn({2, 3, dim}, 2);
  const Tensor tokens = decoder.tokens(prompts);
  EXPECT_EQ(tokens.shape(), (Shape{2, 1 + masks + 3, dim}));
  for (int64_t i = 0; i < 2; ++i) {
    const Tensor own = tokens.select(0, i);
    EXPECT_TRUE(testing::close(own.narrow(0, 0, 1), sam.parameter("mask_decoder.iou_token.weight"), 0));
    EXPECT_TRUE(testing::close(own.narrow(0, 1, masks), sam.parameter("mask_decoder.mask_tokens.weight"), 0));
    EXPECT_TRUE(testing::close(own.narrow(0, 1 + masks, 3), prompts.select(0, i), 0));
  }
  EXPECT_EQ(decoder.tokens(Tensor::empty({2, 0, dim})).size(1), 1 + masks);
}

}  // namespace
}  // namespace vitrail::models
