// SPDX-License-Identifier: Apache-2.0
// The prompt encoder of Segment Anything against its formulas.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "tests/models/small_sam.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/models/sam/prompt_encoder.h"
#include "vitrail/ops/activation.h"

namespace vitrail::models {
namespace {

using kernels::Activation;
using testing::close;
using testing::error_of;

TEST(SamParts, AMaskPromptIsReducedByTwoStridedConvolutions) {
  SmallParams params(1e-2);
  const SamPromptEncoder encoder(small_sam(), params.source());
  const nn::Conv2d conv1({.in_chans = 1, .out_chans = 2, .kernel = 2}, params.source("mask_downscaling.0"));
  const nn::Conv2d conv2({.in_chans = 2, .out_chans = 4, .kernel = 2}, params.source("mask_downscaling.3"));
  const nn::Conv2d conv3({.in_chans = 4, .out_chans = 8}, params.source("mask_downscaling.6"));
  const Tensor logits = small_map({1, 1, 20, 20}, 4, 0.1);
  Tensor x = normalised(params, "mask_downscaling.1", conv1.forward(logits.view({1, 20, 20, 1})), 1e-6);
  x = normalised(params, "mask_downscaling.4", conv2.forward(ops::activation(x, Activation::gelu)), 1e-6);
  EXPECT_TRUE(near(encoder.mask(logits), conv3.forward(ops::activation(x, Activation::gelu))));
  EXPECT_EQ(encoder.no_mask().shape(), (Shape{1, 1, 1, 8}));
  EXPECT_TRUE(close(encoder.no_mask().view({1, 8}), params["no_mask_embed.weight"], 0));
  for (const Shape& shape : {Shape{1, 20, 20}, {1, 2, 20, 20}, {1, 1, 19, 20}, {1, 1, 20, 21}}) {
    EXPECT_ERROR(error_of([&] { encoder.mask(Tensor::zeros(shape)); }), "prompt encoder", shape.to_string());
  }
}

// Cells are at their centres, x across and y down.
TEST(SamParts, GridPositionsAreThoseOfTheCellsCentres) {
  SmallParams params(1);
  const SamPromptEncoder encoder(small_sam(), params.source());
  const Tensor positions = encoder.grid_positions();
  ASSERT_EQ(positions.shape(), (Shape{1, 5, 5, 8}));
  const float* const matrix = params["pe_layer.positional_encoding_gaussian_matrix"].data<float>();
  for (const auto& [y, x] : {std::pair<int64_t, int64_t>{0, 0}, {1, 4}, {4, 2}}) {
    const double across = 2 * (static_cast<double>(x) + 0.5) / 5 - 1, down = 2 * (static_cast<double>(y) + 0.5) / 5 - 1;
    for (int64_t i = 0; i < 4; ++i) {
      const double phase = 2 * std::numbers::pi * (across * matrix[i] + down * matrix[4 + i]);
      const float* const got = positions.data<float>() + (y * 5 + x) * 8;
      EXPECT_NEAR(got[i], std::sin(phase), 1e-5);
      EXPECT_NEAR(got[4 + i], std::cos(phase), 1e-5);
    }
  }
}

TEST(SamParts, PointsNeedALabelEach) {
  SmallParams params;
  const SamPromptEncoder encoder(small_sam(), params.source());
  const auto error_with = [&](const Shape& shape, size_t labels) {
    return error_of([&] { encoder.points(Tensor::zeros(shape), std::vector<SamPoint>(labels, SamPoint::inside)); });
  };
  EXPECT_ERROR(error_with({2, 2}, 2), "prompt encoder", "[2, 2]");
  EXPECT_ERROR(error_with({1, 2, 3}, 2), "prompt encoder", "[1, 2, 3]");
  EXPECT_ERROR(error_with({2, 3, 2}, 5), "prompt encoder", "[2, 3, 2]");
  // Points of several prompts are one after another.
  const Tensor at = Tensor::from<float>({2, 1, 2}, {1, 2, 3, 4});
  const Tensor both = encoder.points(at, {SamPoint::outside, SamPoint::top_left});
  EXPECT_TRUE(close(both.narrow(0, 1, 1), encoder.points(at.narrow(0, 1, 1), {SamPoint::top_left}), 0));
  EXPECT_TRUE(close(both.narrow(0, 0, 1), encoder.points(at.narrow(0, 0, 1), {SamPoint::outside}), 0));
}

}  // namespace
}  // namespace vitrail::models
