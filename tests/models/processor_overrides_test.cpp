// SPDX-License-Identifier: Apache-2.0
// Options on a model with transformers' image processor, and what is written of it.
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/models/config_formats_internal.h"

namespace vitrail::models {
namespace {

using Numbers = std::vector<double>;
using testing::error_of;

ModelConfig with_processor(const std::string& fields) {
  return parse_model_config(R"({"model_type": "vit", "image_size": 32})",
                            R"({"image_processor_type": "ViTImageProcessor", "size": 32, )" + fields + "}",
                            "config.json");
}

Preprocessing overridden(const std::string& fields, const PreprocessingOverrides& overrides) {
  Preprocessing result = with_processor(fields).preprocessing;
  apply_overrides(overrides, 3, {32, 32}, result);
  return result;
}

void expect_equal(const std::optional<Numbers>& got, const Numbers& want) {
  ASSERT_TRUE(got);
  ASSERT_EQ(got->size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_DOUBLE_EQ((*got)[i], want[i]);
}

// x / 127.5 − 1
const char* const kFrom0To2 =
    R"("rescale_factor": 0.00784313725490196, "image_mean": [1, 1, 1], "image_std": [1, 1, 1])";

// A crop_pct in config.json would be taken instead of the processor's steps.
TEST(ProcessorOverrides, APresetLeavesTheProcessorsSteps) {
  ModelConfig config = with_processor("\"resample\": 3");
  apply_overrides({.preset = "imagenet"}, 3, {32, 32}, config.preprocessing);
  EXPECT_FALSE(config.preprocessing.crop_pct);
  const std::string written = write_model_config(config);
  EXPECT_FALSE(testing::contains(written, "crop_pct")) << written;
  const Preprocessing read =
      parse_model_config(written, write_preprocessor_config(config.preprocessing), "config.json").preprocessing;
  EXPECT_EQ(read.rule, ResizeRule::huggingface);
  EXPECT_EQ(read.mean, (Numbers{0.485, 0.456, 0.406}));
  EXPECT_EQ(read.resize_to, config.preprocessing.resize_to);
  EXPECT_EQ(read.interpolation, "bicubic");
}

TEST(ProcessorOverrides, ACropOfTimmIsRefused) {
  const std::string expected =
      ": expected a model that is resized and cropped as in timm, got one whose preprocessor_config.json has its own "
      "steps (give --image-size, or edit its size and crop_size)";
  for (const std::string fields : {"\"resample\": 3", "\"do_resize\": false"}) {
    EXPECT_EQ(error_of([&] { overridden(fields, {.crop_pct = 0.5}); }), "--crop-pct" + expected);
    EXPECT_EQ(error_of([&] { overridden(fields, {.crop_mode = "border"}); }), "--crop-mode" + expected);
  }
  EXPECT_EQ(overridden("\"resample\": 3", {.interpolation = "box"}).interpolation, "box") << "others have their effect";
}

TEST(ProcessorOverrides, MeanAndStdAreOfPixelsTo1) {
  const Preprocessing preset = overridden(kFrom0To2, {.preset = "imagenet"});
  EXPECT_EQ(preset.mean, (Numbers{0.485, 0.456, 0.406}));
  EXPECT_EQ(preset.rescale_factor, 1.0 / 255);
  const Preprocessing mean = overridden(kFrom0To2, {.mean = Numbers{0.25}});
  EXPECT_EQ(mean.mean, Numbers{0.25});
  expect_equal(mean.std, {0.5, 0.5, 0.5});
  EXPECT_EQ(mean.rescale_factor, 1.0 / 255);
  const Preprocessing std = overridden(kFrom0To2, {.std = Numbers{0.25}});
  expect_equal(std.mean, {0.5, 0.5, 0.5});
  EXPECT_EQ(std.std, Numbers{0.25});
  const std::string bytes = R"("do_rescale": false, "image_mean": 127.5, "image_std": 51)";
  EXPECT_EQ(overridden(bytes, {.mean = Numbers{0.25}}).std, Numbers{0.2});
  EXPECT_ERROR(error_of([&] { overridden(bytes, {.mean = Numbers{127.5}}); }), "--mean",
               "127.5, which is for pixels from 0 to 255: divide by 255: 0.5");
  const Preprocessing same = overridden(kFrom0To2, {.interpolation = "box"});
  EXPECT_EQ(same.mean, (Numbers{1, 1, 1})) << "without statistics nothing is converted";
  EXPECT_EQ(same.rescale_factor, 0.00784313725490196);
}

TEST(ProcessorOverrides, TheUnitRangeIsTheSameFunction) {
  Preprocessing bytes{
      .mean = Numbers{51, 102, 0}, .std = Numbers{51}, .rule = ResizeRule::huggingface, .rescale_factor = 1};
  use_unit_range(bytes);
  EXPECT_EQ(bytes.mean, (Numbers{0.2, 0.4, 0}));
  EXPECT_EQ(bytes.std, Numbers{0.2});
  EXPECT_EQ(bytes.rescale_factor, 1.0 / 255);
  for (const double factor : {1.0 / 255, 0.00392157}) {
    Preprocessing usual{
        .mean = Numbers{0.485}, .std = Numbers{0.3}, .rule = ResizeRule::huggingface, .rescale_factor = factor};
    use_unit_range(usual);
    EXPECT_EQ(usual.mean, Numbers{0.485});
    EXPECT_EQ(usual.std, Numbers{0.3});
    EXPECT_EQ(usual.rescale_factor, factor);
  }
  Preprocessing timm{.mean = Numbers{0.5}, .rescale_factor = 1};
  use_unit_range(timm);
  EXPECT_EQ(timm.mean, Numbers{0.5}) << "timm has no factor";
}

TEST(ProcessorOverrides, TimmsStatisticsInConfigAreOfPixelsTo1) {
  const auto written = [](const std::string& fields) {
    return Json::parse(write_model_config(with_processor(fields)))["pretrained_cfg"];
  };
  expect_equal(written(kFrom0To2)["mean"].get<Numbers>(), {0.5, 0.5, 0.5});
  expect_equal(written(kFrom0To2)["std"].get<Numbers>(), {0.5, 0.5, 0.5});
  const Json bytes = written(R"("do_rescale": false, "image_mean": [51, 102, 0], "image_std": [51, 51, 255])");
  EXPECT_EQ(bytes["mean"].get<Numbers>(), (Numbers{0.2, 0.4, 0}));
  EXPECT_EQ(bytes["std"].get<Numbers>(), (Numbers{0.2, 0.2, 1}));
  // Neither rescaled nor normalised.
  expect_equal(written(R"("do_rescale": false, "do_normalize": false)")["std"].get<Numbers>(), Numbers(3, 1.0 / 255));
}

}  // namespace
}  // namespace vitrail::models
