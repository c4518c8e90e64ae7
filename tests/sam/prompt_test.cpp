// SPDX-License-Identifier: Apache-2.0
// Prompts as text, as images, and their limits.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/sam/prompt_text.h"

namespace vitrail::sam {
namespace {

using testing::contains;
using testing::error_of;

TEST(PromptText, APointIsInTheObjectUnlessItsLabelIsZero) {
  const Point plain = parse_point("1.5,-2", "point");
  EXPECT_EQ(plain.x, 1.5);
  EXPECT_EQ(plain.y, -2);
  EXPECT_EQ(plain.label, 1);
  EXPECT_EQ(parse_point("1,2,0", "point").label, 0);
  EXPECT_EQ(parse_point("1,2,1", "point").label, 1);
  EXPECT_EQ(parse_point("1e2,2", "point").x, 100);
  for (const char* text : {"", "1", "1,", ",1", "1,2,", "1,2,2", "1,2,-1", "1,2,0.5", "1,2,0,0", "1;2", "1, 2", " 1,2",
                           "1,2 ", "nan,1", "inf,1", "1,x"}) {
    EXPECT_TRUE(error_of([&] { parse_point(text, "point"); }).starts_with("point: expected X,Y")) << text;
  }
}

TEST(PromptText, ABoxHasFourNumbers) {
  const Box box = parse_box("1,2.5,3,4", "box");
  EXPECT_EQ(box.x0, 1);
  EXPECT_EQ(box.y0, 2.5);
  EXPECT_EQ(box.x1, 3);
  EXPECT_EQ(box.y1, 4);
  for (const char* text : {"", "1,2,3", "1,2,3,4,5", "1,2,3,", "1,2,3,x"}) {
    EXPECT_TRUE(error_of([&] { parse_box(text, "box"); }).starts_with("box: expected X0,Y0,X1,Y1")) << text;
  }
}

TEST(PromptText, AMaskIsAnImageOfTwoValues) {
  EXPECT_EQ(mask_of_image({3, 1, 1, {0, 7, 7}}, "mask").pixels, (std::vector<uint8_t>{0, 1, 1}));
  EXPECT_EQ(mask_of_image({2, 1, 1, {255, 255}}, "mask").pixels, (std::vector<uint8_t>{1, 1}));
  EXPECT_TRUE(contains(error_of([] { mask_of_image({3, 1, 1, {0, 7, 8}}, "mask"); }), "an image of several values"));
  EXPECT_TRUE(contains(error_of([] { mask_of_image({2, 1, 1, {0, 0}}, "mask"); }), "pixels in the object"));
}

TEST(PromptText, AMaskHasTheSizeOfItsImage) {
  const BinaryMask mask{4, 2, std::vector<uint8_t>(8, 1)};
  EXPECT_EQ(logits_of_image_mask(mask, 4, 2, 8).shape(), (Shape{8, 8}));
  for (const auto& [width, height] : {std::pair(2, 4), std::pair(4, 3), std::pair(3, 2)}) {
    EXPECT_TRUE(contains(error_of([&, w = width, h = height] { logits_of_image_mask(mask, w, h, 8); }), "got 4×2"));
  }
}

std::string problem_of(const Prompt& prompt) {
  try {
    check_prompt(prompt, 20, 10, 2, "prompt");
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Prompt, CoordinatesMayBeOnTheBorderOfTheImage) {
  for (const Point& point : {Point{0, 0}, Point{20, 10}, Point{20, 0, 0}, Point{0.5, 9.5}}) {
    EXPECT_EQ(problem_of({.points = {point}}), "");
  }
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Point& point :
       {Point{-0.1, 0}, Point{0, -0.1}, Point{20.1, 0}, Point{0, 10.1}, Point{nan, 1}, Point{1, nan}}) {
    EXPECT_TRUE(contains(problem_of({.points = {{1, 1}, point}}), "coordinates in the image of 20×10")) << point.x;
  }
  for (const int label : {-1, 2}) EXPECT_TRUE(contains(problem_of({.points = {{1, 1, label}}}), "the label 1"));
  EXPECT_TRUE(contains(problem_of({}), "points, a box or a mask"));
}

TEST(Prompt, ABoxHasAnArea) {
  EXPECT_EQ(problem_of({.box = Box{0, 0, 20, 10}}), "");
  EXPECT_EQ(problem_of({.box = Box{3, 4, 3.1, 4.1}}), "");
  for (const Box& box : {Box{3, 4, 3, 5}, Box{3, 4, 5, 4}, Box{5, 4, 3, 5}, Box{3, 5, 5, 4}}) {
    EXPECT_TRUE(contains(problem_of({.box = box}), "a box x0, y0, x1, y1 with x0 < x1 and y0 < y1")) << box.x0;
  }
  for (const Box& box : {Box{-1, 0, 5, 5}, Box{0, -1, 5, 5}, Box{0, 0, 21, 5}, Box{0, 0, 5, 11}}) {
    EXPECT_TRUE(contains(problem_of({.box = box}), "coordinates in the image")) << box.x1;
  }
}

// Detectors predict centre and size, so that corners are often a fraction of a pixel outside.
TEST(Prompt, ABoxThatSpillsOverTheBorderIsClippedAndSaid) {
  const testing::Warnings warnings;
  Prompt prompt{.box = Box{-0.3, 2, 20.4, 10.9}};
  clip_box(prompt, 20, 10, "boxes.jsonl:1");
  EXPECT_EQ(problem_of(prompt), "");
  EXPECT_EQ((std::vector{prompt.box->x0, prompt.box->y0, prompt.box->x1, prompt.box->y1}),
            (std::vector<double>{0, 2, 20, 10}));
  EXPECT_EQ(warnings.messages,
            std::vector<std::string>{"boxes.jsonl:1: the box -0.3, 2, 20.4, 10.9 is clipped to the image of 20×10"});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Box& box : {Box{-1, 0, 5, 5}, Box{0, 0, 20.5, 11}, Box{-0.5, nan, 5, 5}, Box{20.1, 0, 20.9, 5}}) {
    Prompt other{.box = box};
    clip_box(other, 20, 10, "prompt");
    EXPECT_NE(problem_of(other), "") << box.x0;
  }
  Prompt inside{.box = Box{0, 0, 20, 10}};
  clip_box(inside, 20, 10, "prompt");
  EXPECT_EQ(warnings.messages.size(), 2u) << "the box of no area outside is clipped, too";
}

TEST(Prompt, AMaskHasLogitsOfTheModelsSize) {
  const auto mask = [](std::vector<float> values) {
    return problem_of({.mask_logits = Tensor::from<float>({2, 2}, values)});
  };
  EXPECT_EQ(mask({-1, 1, 2, 3}), "");
  EXPECT_EQ(mask({1, 1, 1, 1}), "");  // all in the object
  EXPECT_EQ(mask({0, 1, 2, 0}), "");
  for (const std::vector<float>& binary :
       {std::vector<float>{0, 1, 1, 0}, {0, 255, 0, 0}, {1, 1, 1, 0}, {0, 0, 0, 0}, {0, -1, -1, -1}}) {
    EXPECT_TRUE(contains(mask(binary), "got a binary mask"));
  }
  EXPECT_TRUE(contains(mask({-1, 1, std::numeric_limits<float>::infinity(), 3}), "finite mask logits"));
  EXPECT_TRUE(contains(mask({-1, 1, 3, std::numeric_limits<float>::quiet_NaN()}), "finite mask logits"));
  for (const Shape& shape : {Shape{1, 2}, Shape{2, 1}, Shape{1, 2, 2}, Shape{4}, Shape{3, 3}}) {
    EXPECT_TRUE(contains(problem_of({.mask_logits = Tensor::zeros(shape)}), "mask logits [2, 2] in f32"));
  }
  EXPECT_TRUE(contains(problem_of({.mask_logits = Tensor::zeros({2, 2}, DType::f64)}), "mask logits [2, 2] in f32"));
}

TEST(PromptText, MessagesQuoteTheText) {
  EXPECT_ERROR(error_of([] { parse_point("1,2,3", "--point"); }), "--point", "'1,2,3'");
  EXPECT_ERROR(error_of([] { parse_box("1,2,3", "--box"); }), "--box", "'1,2,3'");
  EXPECT_ERROR(error_of([] { mask_of_image({3, 1, 1, {1, 2, 2}}, "m"); }), "m", "an image of several values");
  EXPECT_ERROR(error_of([] { mask_of_image({1, 1, 1, {0}}, "m"); }), "m", "none");
  const BinaryMask mask = mask_of_image({3, 1, 1, {9, 0, 9}}, "m");
  EXPECT_EQ(mask.width, 3);
  EXPECT_EQ(mask.height, 1);
  EXPECT_EQ(mask.pixels, (std::vector<uint8_t>{1, 0, 1}));
  EXPECT_ERROR(error_of([&] { logits_of_image_mask(mask, 1, 3, 8); }), "mask", "3×1");
}

TEST(Prompt, MessagesNameThePromptAndTheValue) {
  EXPECT_ERROR(problem_of({}), "prompt", "none");
  EXPECT_ERROR(problem_of({.points = {{1, 2}, {20.5, 3}}}), "prompt", "(20.5, 3)");
  EXPECT_ERROR(problem_of({.points = {{1, 2, 7}}}), "prompt", "7");
  EXPECT_ERROR(problem_of({.box = Box{1, 2, 30, 4}}), "prompt", "(30, 4)");
  EXPECT_ERROR(problem_of({.box = Box{1, 20, 3, 4}}), "prompt", "(1, 20)");
  EXPECT_ERROR(problem_of({.box = Box{4, 3, 2, 1}}), "prompt", "4, 3, 2, 1");
  EXPECT_ERROR(problem_of({.mask_logits = Tensor::zeros({2, 3})}), "prompt", "f32 [2, 3]");
  EXPECT_ERROR(problem_of({.mask_logits = Tensor::full({2, 2}, std::nanf(""))}), "prompt", "a NaN or infinity");
  EXPECT_ERROR(problem_of({.mask_logits = Tensor::zeros({2, 2})}), "prompt", "a binary mask");
  // A valid point does not excuse the box beside it.
  EXPECT_EQ(problem_of({.points = {{1, 2}}, .box = Box{4, 3, 2, 1}}).substr(0, 22), "prompt: expected a box");
  EXPECT_EQ(problem_of({.points = {{1, 2}}, .mask_logits = Tensor::zeros({2, 2})}).substr(0, 29),
            "prompt: expected mask logits,");
}

TEST(Prompt, DefaultsAreAPointInTheObjectAndThreeMasks) {
  const Prompt prompt;
  EXPECT_TRUE(prompt.points.empty());
  EXPECT_FALSE(prompt.box.has_value());
  EXPECT_FALSE(prompt.mask_logits.defined());
  EXPECT_TRUE(prompt.multimask);
  const Point point;
  EXPECT_EQ(point.x, 0);
  EXPECT_EQ(point.y, 0);
  EXPECT_EQ(point.label, 1);
}

}  // namespace
}  // namespace vitrail::sam
