// SPDX-License-Identifier: Apache-2.0
#include "vitrail/sam/prompt_file.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/npy.h"

namespace vitrail::sam {
namespace {

using testing::contains;
using testing::error_of;

std::string error_with(const std::string& text) {
  return error_of([&] { parse_prompts(text, "prompts.jsonl", "folder"); });
}

TEST(PromptFile, FieldsAreRead) {
  const auto lines = parse_prompts(
      "{\"image\": \"a.png\", \"points\": [[1, 2.5, 0], [3, 4]], \"multimask\": false}\n\n"
      "{\"image\": \"/b.png\", \"box\": [1, 2, 3, 4], \"mask_logits\": \"m.npy\"}\r\n",
      "prompts.jsonl", "folder");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].image, "folder/a.png");
  ASSERT_EQ(lines[0].prompt.points.size(), 2u);
  EXPECT_EQ(lines[0].prompt.points[0].y, 2.5);
  EXPECT_EQ(lines[0].prompt.points[0].label, 0);
  EXPECT_EQ(lines[0].prompt.points[1].label, 1);
  EXPECT_FALSE(lines[0].prompt.multimask);
  EXPECT_EQ(lines[1].where, "prompts.jsonl:3");
  EXPECT_EQ(lines[1].image, "/b.png");
  EXPECT_EQ(lines[1].prompt.box->y1, 4);
  EXPECT_EQ(lines[1].mask_logits, "folder/m.npy");
}

TEST(PromptFile, ErrorsNameTheLine) {
  EXPECT_TRUE(
      contains(error_with("{\"image\": \"a\", \"points\": [[1, 2]]}\n[]"), "prompts.jsonl:2: expected a JSON object"));
  EXPECT_TRUE(contains(error_with("{\"image\": \"a\", \"points\": [[1, 2, 2]]}"), "prompts.jsonl:1: expected a point"));
  EXPECT_TRUE(contains(error_with("{\"image\": \"a\", \"points\": [[1, 2, 0.5]]}"), "the label 1"));
  EXPECT_TRUE(contains(error_with("{\"image\": \"a\", \"points\": [[1]]}"), "got [1]"));
  EXPECT_TRUE(contains(error_with("{\"image\": \"a\", \"box\": [1, 2, 3]}"), "a box [x0, y0, x1, y1]"));
  EXPECT_TRUE(contains(error_with("{\"image\": \"a\", \"box\": [1, 2, 3, 1e999]}"), "prompts.jsonl:1"));
  EXPECT_TRUE(contains(error_with("{\"image\": \"a\", \"box\": [1, 2, 3, NaN]}"), "not JSON"));
  EXPECT_TRUE(contains(error_with("{\"image\": \"a\"}"), "points, a box or mask_logits"));
  EXPECT_TRUE(contains(error_with("{\"box\": [1, 2, 3, 4]}"), "the path of an image"));
  EXPECT_TRUE(contains(error_with("{\"image\": 1}"), "image as text"));
  EXPECT_TRUE(contains(error_with("{\"image\": \"a\", \"boxes\": []}"), "got \"boxes\""));
  EXPECT_TRUE(contains(error_with("{\"image\": \"a\", \"multimask\": 1}"), "multimask true or false"));
  EXPECT_TRUE(contains(error_with("{\"image\": \"a\", \"points\": [[[[1]]]]}"), "more nesting"));
}

TEST(PromptFile, MaskLogitsHaveTwoAxes) {
  const auto file = testing::scratch_folder() / "mask.npy";
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  write_npy(file, std::array<int64_t, 3>{1, 2, 3}, values.data());
  EXPECT_EQ(read_mask_logits(file).shape(), (Shape{2, 3}));
  write_npy(file, std::array<int64_t, 4>{1, 1, 2, 3}, values.data());  // as segment --logits writes one mask
  EXPECT_EQ(read_mask_logits(file).shape(), (Shape{2, 3}));
  write_npy(file, std::array<int64_t, 4>{1, 2, 1, 3}, values.data());
  EXPECT_TRUE(contains(error_of([&] { read_mask_logits(file); }), "logits [h, w] of one mask")) << "of two masks";
  EXPECT_TRUE(contains(error_of([&] { read_mask_logits(file); }), "got f32 [1,2,1,3]"));
  write_npy(file, std::array<int64_t, 1>{6}, values.data());
  EXPECT_TRUE(contains(error_of([&] { read_mask_logits(file); }), "got f32 [6]"));
  const std::vector<double> precise{0.5, -1, 2, 3, 4, 5};
  NpyArray array;
  array.dtype = DType::f64;
  array.shape = {1, 3, 2};
  array.f64 = precise;
  const Tensor read = mask_logits_of(array, "array");
  EXPECT_EQ(read.shape(), (Shape{3, 2}));
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(read.data<float>()[i], precise[static_cast<size_t>(i)]);
  const std::vector<int64_t> binary{0, 1};
  write_npy(file, std::array<int64_t, 2>{1, 2}, binary.data());
  EXPECT_TRUE(contains(error_of([&] { read_mask_logits(file); }), "got i64"));
}

// A mask of 4 × 2 pixels in a frame of 2 × 2: half of the upper right pixel is covered, and the lower half is padding.
TEST(LogitsOfMask, AreLogOddsOfTheCoveredPart) {
  const Tensor logits = logits_of({4,
                                   2,
                                   {1, 1, 1, 0,  //
                                    1, 1, 1, 0}},
                                  2);
  const auto limit = static_cast<float>(std::log(999.0));
  EXPECT_NEAR(logits.data<float>()[0], limit, 1e-4);
  EXPECT_NEAR(logits.data<float>()[1], 0, 1e-6);
  EXPECT_NEAR(logits.data<float>()[2], -limit, 1e-4);
  EXPECT_NEAR(logits.data<float>()[3], -limit, 1e-4);
}

}  // namespace
}  // namespace vitrail::sam
