// SPDX-License-Identifier: Apache-2.0
#include "vitrail/sam/prompt_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "tests/support/errors.h"
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
  const testing::Warnings warnings;
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
  EXPECT_TRUE(warnings.any("prompts.jsonl: 1 blank line left out"));
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

TEST(PromptFile, EachFieldIsRead) {
  const auto lines = parse_prompts(
      "{\"image\": \"a\", \"points\": [[1.5, 2, 1], [3, 4.25, 0], [5, 6]], \"box\": [1, 2.5, 3, 4.75]}\n"
      "{\"image\": \"b\", \"mask_logits\": \"m\"}\n \t\n"
      "{\"image\": \"c\", \"points\": [[0, 0]], \"multimask\": true}",
      "f", "d");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].where, "f:1");
  EXPECT_EQ(lines[0].image, "d/a");
  EXPECT_TRUE(lines[0].mask_logits.empty());
  EXPECT_TRUE(lines[0].prompt.multimask);
  ASSERT_EQ(lines[0].prompt.points.size(), 3u);
  EXPECT_EQ(lines[0].prompt.points[0].x, 1.5);
  EXPECT_EQ(lines[0].prompt.points[0].y, 2);
  EXPECT_EQ(lines[0].prompt.points[0].label, 1);
  EXPECT_EQ(lines[0].prompt.points[1].y, 4.25);
  EXPECT_EQ(lines[0].prompt.points[1].label, 0);
  EXPECT_EQ(lines[0].prompt.points[2].label, 1);
  ASSERT_TRUE(lines[0].prompt.box);
  EXPECT_EQ(lines[0].prompt.box->x0, 1);
  EXPECT_EQ(lines[0].prompt.box->y0, 2.5);
  EXPECT_EQ(lines[0].prompt.box->x1, 3);
  EXPECT_EQ(lines[0].prompt.box->y1, 4.75);
  EXPECT_EQ(lines[1].where, "f:2");
  EXPECT_EQ(lines[1].image, "d/b");
  EXPECT_EQ(lines[1].mask_logits, "d/m");
  EXPECT_FALSE(lines[1].prompt.box);
  EXPECT_EQ(lines[2].where, "f:4") << "an empty line counts";
  EXPECT_TRUE(parse_prompts("", "f", "d").empty());
  EXPECT_TRUE(parse_prompts("\n\n", "f", "d").empty());
}

TEST(PromptFile, MessagesNameWhatIsExpectedAndWhatIsThere) {
  const auto refusal = [](const std::string& text) { return error_of([&] { parse_prompts("\n" + text, "f", "d"); }); };
  const std::string point =
      "f:2: expected a point [x, y, label] with the label 1 (in the object) or 0 (outside it), got ";
  EXPECT_EQ(refusal(R"({"image": "a", "points": [[1]]})"), point + "[1]");
  EXPECT_EQ(refusal(R"({"image": "a", "points": [[1,2,3,4]]})"), point + "[1,2,3,4]");
  EXPECT_EQ(refusal(R"({"image": "a", "points": [[1,2,-1]]})"), point + "[1,2,-1]");
  EXPECT_EQ(refusal(R"({"image": "a", "points": [[1,"2"]]})"), point + "[1,\"2\"]");
  EXPECT_EQ(refusal(R"({"image": "a", "points": [5]})"), point + "5");
  EXPECT_ERROR(refusal(R"({"image": "a", "points": 5})"), "f:2", "number");
  const std::string box = "f:2: expected a box [x0, y0, x1, y1], got ";
  EXPECT_EQ(refusal(R"({"image": "a", "box": [1,2,3]})"), box + "[1,2,3]");
  EXPECT_EQ(refusal(R"({"image": "a", "box": [1,2,3,4,5]})"), box + "[1,2,3,4,5]");
  EXPECT_EQ(refusal(R"({"image": "a", "box": [1,2,3,true]})"), box + "[1,2,3,true]");
  EXPECT_ERROR(refusal(R"({"image": 1})"), "f:2", "number");
  EXPECT_ERROR(refusal(R"({"mask_logits": []})"), "f:2", "array");
  EXPECT_ERROR(refusal(R"({"image": ""})"), "f:2", "\"\"");
  EXPECT_TRUE(refusal(R"({"image": "a\u0000b"})").starts_with("f:2: expected image as a path, got "));
  EXPECT_ERROR(refusal(R"({"image": "a", "multimask": "x"})"), "f:2", "string");
  EXPECT_ERROR(refusal(R"({"image": "a", "x": 1})"), "f:2", "\"x\"");
  EXPECT_ERROR(refusal(R"({"box": [1,2,3,4]})"), "f:2", "none");
  EXPECT_ERROR(refusal(R"({"image": "a", "points": []})"), "f:2", "none");
  EXPECT_ERROR(refusal("{"), "f:2", "text that is not JSON");
  EXPECT_ERROR(refusal("[]"), "f:2", "array");
  EXPECT_ERROR(refusal(R"({"image": [[[1]]]})"), "f:2", "more nesting");
  EXPECT_ERROR(refusal(R"({"image": [[1]]})"), "f:2", "array") << "three levels";
}

TEST(PromptFile, IsReadFromItsFolder) {
  const auto folder = testing::scratch_folder();
  std::ofstream(folder / "p.jsonl") << R"({"image": "a", "box": [1, 2, 3, 4]})";
  const auto lines = read_prompts(folder / "p.jsonl");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].image, folder / "a");
  EXPECT_EQ(lines[0].where, (folder / "p.jsonl").string() + ":1");
  std::ofstream(folder / "p.jsonl") << "\n";
  EXPECT_ERROR(error_of([&] { read_prompts(folder / "p.jsonl"); }), (folder / "p.jsonl").string(), "none");
}

// Cells of 5/4 pixels, counted in quarters of a pixel: 5 × 5 in a cell.
TEST(LogitsOfMask, OfCellsThatBeginWithinPixels) {
  const BinaryMask mask{5,
                        3,
                        {1, 0, 1, 1, 0,  //
                         0, 1, 1, 0, 0,  //
                         1, 0, 0, 0, 1}};
  const Tensor logits = logits_of(mask, 4);
  ASSERT_EQ(logits.shape(), (Shape{4, 4}));
  for (int64_t y = 0; y < 4; ++y) {
    for (int64_t x = 0; x < 4; ++x) {
      int covered = 0;
      for (int64_t v = 5 * y; v < 5 * y + 5; ++v) {
        for (int64_t u = 5 * x; u < 5 * x + 5; ++u) covered += v / 4 < 3 && mask.row(v / 4)[u / 4] != 0;
      }
      const double part = std::min(std::max(covered / 25.0, 0.001), 0.999);
      EXPECT_NEAR(logits.data<float>()[4 * y + x], std::log(part / (1 - part)), 1e-5) << x << "," << y;
    }
  }
  EXPECT_NEAR(logits_of({1, 2, {1, 1}}, 1).data<float>()[0], 0, 1e-6) << "half of a frame of 2 × 2";
}

}  // namespace
}  // namespace vitrail::sam
