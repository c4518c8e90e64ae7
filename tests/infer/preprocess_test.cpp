// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "vitrail/infer/preprocess.h"

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"

namespace vitrail::infer {
namespace {

// (200 · 0.001 − 0.1) / 0.5
TEST(Preprocess, TakesTheProcessorsRescaleFactorMeanAndStd) {
  models::Preprocessing settings;
  settings.rule = models::ResizeRule::huggingface;
  settings.input_size = settings.resize_to = {4, 6};
  settings.interpolation = "bilinear";
  settings.rescale_factor = 0.001;
  settings.mean = {0.1}, settings.std = {0.5};
  image::Image grey = image::make_image(9, 7, 1);
  std::ranges::fill(grey.pixels, uint8_t{200});
  const Tensor input = image::apply(grey, transform_of(settings, "test"));
  EXPECT_TRUE(testing::close(input, Tensor::full({1, 4, 6}, 0.2, DType::f32), 1e-6));
}

TEST(Preprocess, TheUnitRangeGivesTheSameValues) {
  for (const bool floats : {false, true}) {
    models::Preprocessing settings;
    settings.rule = models::ResizeRule::huggingface;
    settings.input_size = settings.resize_to = {4, 6};
    settings.interpolation = "bilinear";
    settings.rescale_factor = 0.01;
    settings.mean = {0.1}, settings.std = {0.5};
    settings.resize_floats = floats;
    image::Image grey = image::make_image(9, 7, 1);
    for (size_t i = 0; i < grey.pixels.size(); ++i) grey.pixels[i] = static_cast<uint8_t>(4 * i);
    const Tensor before = image::apply(grey, transform_of(settings, "test"));
    models::use_unit_range(settings);
    EXPECT_EQ(settings.rescale_factor, 1.0 / 255);
    EXPECT_TRUE(testing::close(image::apply(grey, transform_of(settings, "test")), before, 1e-5));
  }
}

TEST(Preprocess, MissingSettingsAreAnErrorThatNamesTheirOptions) {
  const std::string message = testing::error_of([] { transform_of({}, "model"); });
  EXPECT_TRUE(testing::contains(message, "model: expected preprocessing settings")) << message;
  for (const std::string& option : models::Preprocessing{}.missing())
    EXPECT_TRUE(testing::contains(message, option)) << message;
}

TEST(Preprocess, TakesTimmsCropAndTheProcessorsSteps) {
  models::Preprocessing settings;
  settings.input_size = {6, 8};
  settings.interpolation = "bicubic";
  settings.mean = {0.1, 0.2, 0.3}, settings.std = {0.4, 0.5, 0.6};
  settings.crop_pct = 0.75;
  settings.crop_mode = "border";
  const image::EvalTransform timm = transform_of(settings, "test");
  EXPECT_EQ(timm.size, (std::array<int64_t, 2>{6, 8}));
  EXPECT_EQ(timm.crop_pct, 0.75);
  EXPECT_EQ(timm.crop_mode, image::crop_mode_from_name("border"));
  EXPECT_EQ(timm.interpolation, image::filter_from_name("bicubic"));
  EXPECT_EQ(timm.mean, *settings.mean);
  EXPECT_EQ(timm.std, *settings.std);
  EXPECT_FALSE(timm.fill_color.has_value());
  EXPECT_FALSE(timm.processor.has_value());
  settings.fill_color = 255;
  EXPECT_EQ(transform_of(settings, "test").fill_color, 255);

  using Resize = image::ProcessorSteps::Resize;
  settings.rule = models::ResizeRule::huggingface;
  settings.resize_shortest = 9;
  settings.center_crop = {6, 8};
  settings.rescale_factor = 0.5;
  const auto shortest = transform_of(settings, "test").processor;
  ASSERT_TRUE(shortest.has_value());
  EXPECT_EQ(shortest->resize, Resize::shortest_edge);
  EXPECT_EQ(shortest->size, (std::array<int64_t, 2>{9, 9}));
  EXPECT_EQ(shortest->crop, settings.center_crop);
  EXPECT_EQ(shortest->rescale, settings.rescale_factor);
  for (const bool floats : {false, true}) {
    settings.resize_floats = floats;
    EXPECT_EQ(transform_of(settings, "test").processor->resize_floats, floats);
  }
  settings.resize_shortest.reset();
  EXPECT_EQ(transform_of(settings, "test").processor->resize, Resize::none);
  settings.resize_to = {6, 8};
  const auto fixed = transform_of(settings, "test").processor;
  EXPECT_EQ(fixed->resize, Resize::fixed);
  EXPECT_EQ(fixed->size, (std::array<int64_t, 2>{6, 8}));
}

// The sizes that transformers 5.24 gives: CLIPImageProcessor(size={"shortest_edge": 32, "longest_edge": 40}).
TEST(Preprocess, TheLongestEdgeLimitsTheResize) {
  models::Preprocessing settings;
  settings.rule = models::ResizeRule::huggingface;
  settings.input_size = {32, 32};
  settings.interpolation = "bicubic";
  settings.mean = {0.5}, settings.std = {0.5};
  settings.resize_shortest = 32;
  settings.resize_longest = 40;
  const image::EvalTransform transform = transform_of(settings, "test");
  using Size = std::array<int64_t, 2>;  // height, width
  for (const auto& [image, resized] : {std::pair(Size{50, 100}, Size{20, 40}), std::pair(Size{100, 50}, Size{40, 20}),
                                       std::pair(Size{36, 40}, Size{32, 35}), std::pair(Size{7, 300}, Size{1, 40}),
                                       std::pair(Size{32, 33}, Size{32, 33})}) {
    EXPECT_EQ(image::output_size(transform, image[1], image[0]), resized) << image[0] << "×" << image[1];
  }
}

TEST(Preprocess, ImagesHaveTheChannelsOfTheModel) {
  EXPECT_EQ(color_mode_of(3), image::ColorMode::rgb);
  EXPECT_EQ(color_mode_of(1), image::ColorMode::grey);
  for (const int64_t channels : {0, 2, 4}) EXPECT_THROW(color_mode_of(channels), Error) << channels;
}

TEST(Preprocess, TheErrorListsTheMissingOptionsInOrder) {
  EXPECT_ERROR(testing::error_of([] { transform_of({}, "model.safetensors"); }), "model.safetensors", "none");
  models::Preprocessing settings;
  settings.mean = {0.1}, settings.std = {0.5};
  settings.crop_pct = 0.9;
  settings.input_size = {4, 6};
  EXPECT_ERROR(testing::error_of([&] { transform_of(settings, "m"); }), "m", "none");
  EXPECT_ERROR(testing::error_of([] { color_mode_of(2); }), "images", "2");
}

// timm's settings stay out of a processor's steps.
TEST(Preprocess, AProcessorHasNoCropAndNoResizeUnlessConfigured) {
  models::Preprocessing settings;
  settings.rule = models::ResizeRule::huggingface;
  settings.input_size = {4, 6};
  settings.interpolation = "bilinear";
  settings.mean = {0.1}, settings.std = {0.5};
  settings.crop_pct = 0.5;
  settings.crop_mode = "squash";
  settings.rescale_factor = 0.25;
  const image::EvalTransform transform = transform_of(settings, "test");
  ASSERT_TRUE(transform.processor.has_value());
  EXPECT_FALSE(transform.processor->crop.has_value());
  EXPECT_EQ(transform.processor->rescale, 0.25);
  EXPECT_EQ(transform.processor->resize, image::ProcessorSteps::Resize::none);
  EXPECT_EQ(transform.crop_pct, image::EvalTransform{}.crop_pct) << "timm's steps are not used";
  EXPECT_EQ(transform.crop_mode, image::EvalTransform{}.crop_mode);
  EXPECT_EQ(transform.size, (std::array<int64_t, 2>{4, 6}));
  EXPECT_EQ(transform.interpolation, image::filter_from_name("bilinear"));
  settings.center_crop = {3, 5};
  settings.resize_to = {7, 9};
  const auto steps = transform_of(settings, "test").processor;
  EXPECT_EQ(steps->crop, (std::array<int64_t, 2>{3, 5}));
  EXPECT_EQ(steps->size, (std::array<int64_t, 2>{7, 9}));
}

}  // namespace
}  // namespace vitrail::infer
