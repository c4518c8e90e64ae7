// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/preprocessing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/models/support.h"
#include "vitrail/base/error.h"
#include "vitrail/models/model_config.h"

namespace vitrail::models {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

TEST(Preprocessing, ValuesOfPublishedModelsAreAccepted) {
  const std::vector<double> means[] = {{0.485, 0.456, 0.406}, {0.5, 0.5, 0.5}, {0, 0, 0}, {1, 1, 1}, {0.1307}};
  const std::vector<double> stds[] = {{0.229, 0.224, 0.225}, {0.5, 0.5, 0.5}, {1, 1, 1}, {0.3081}, {1.0 / 255}};
  for (const auto& mean : means) EXPECT_EQ(refusal({.mean = mean}), "");
  for (const auto& std : stds) EXPECT_EQ(refusal({.std = std}), "");
  for (const double crop : {0.01, 0.875, 1.0}) EXPECT_EQ(refusal({.crop_pct = crop}), "");
  EXPECT_EQ(refusal({}), "");
}

TEST(Preprocessing, ValuesOutOfRangeAreErrors) {
  for (const double bad : {-0.1, 1.001, 255.0, kNan, kInfinity, -kInfinity}) {
    for (const size_t at : {0, 1, 2}) {
      std::vector<double> mean{0.5, 0.5, 0.5}, std = mean;
      mean[at] = std[at] = bad;
      EXPECT_NE(refusal({.mean = mean}).find("--mean: expected numbers from 0 to 1"), std::string::npos) << bad;
      EXPECT_NE(refusal({.std = std}).find("--std: expected numbers above 0 and up to 1"), std::string::npos) << bad;
    }
  }
  EXPECT_NE(refusal({.std = std::vector<double>{0.5, 0, 0.5}}), "");
  for (const double bad : {0.0, -1.0, 0.009, 1.01, 90.0, 100.0, kNan, kInfinity}) {
    EXPECT_NE(refusal({.crop_pct = bad}).find("--crop-pct: expected a fraction from 0.01 to 1"), std::string::npos);
  }
  EXPECT_NE(refusal({.crop_pct = 90}).find("(90 % is 0.9)"), std::string::npos);
  for (const int64_t side : {int64_t{0}, int64_t{-1}, int64_t{1} << 40}) {
    EXPECT_NE(refusal({.input_size = {{224, side}}}), "");
    EXPECT_NE(refusal({.rule = ResizeRule::huggingface, .resize_shortest = side}), "");
  }
}

TEST(Preprocessing, ValuesForPixelsTo255AreRecognised) {
  EXPECT_NE(refusal({.mean = {{123.675, 116.28, 103.53}}}).find("divide by 255: 0.485,0.456,0.406"), std::string::npos);
  EXPECT_NE(refusal({.std = {{58.395, 57.12, 57.375}}}).find("divide by 255: 0.229,0.224,0.225"), std::string::npos);
  EXPECT_EQ(refusal({.mean = {{-1, 0, 0}}}).find("255"), std::string::npos);
  // A processor that does not rescale has pixels from 0 to 255.
  EXPECT_EQ(refusal({.mean = {{123.675, 116.28, 103.53}},
                     .std = {{58.395, 57.12, 57.375}},
                     .rule = ResizeRule::huggingface,
                     .rescale_factor = 1}),
            "");
}

TEST(Preprocessing, TheNumberOfValuesIsOneOrTheChannels) {
  EXPECT_EQ(refusal({.mean = {{0.5}}}), "");
  EXPECT_NE(refusal({.mean = {{0.5, 0.5}}}).find("expected 1 or 3 numbers, one per channel, got 2"), std::string::npos);
  EXPECT_NE(refusal({.std = {{0.5, 0.5, 0.5, 0.5}}}), "");
  EXPECT_NE(refusal({.mean = std::vector<double>{}}), "");
  EXPECT_NE(refusal({.mean = {{0.5, 0.5}}}, 1), "");
  EXPECT_EQ(refusal({.mean = {{0.5, 0.5, 0.5}}}, 1), "") << "values of RGB for a greyscale model";
}

TEST(Preprocessing, FieldsOfConfigurationFilesAreChecked) {
  const auto parsed = [](const std::string& json, const std::string& preprocessor) -> std::string {
    try {
      parse_model_config(json, preprocessor, "config.json");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const auto timm = [&](const std::string& field) {
    return parsed("{\"architecture\": \"vit\", \"pretrained_cfg\": {" + field + "}}", "");
  };
  const auto transformers = [&](const std::string& field) {
    return parsed("{\"model_type\": \"vit\"}", "{\"size\": 224, " + field + "}");
  };
  EXPECT_NE(timm("\"mean\": [123.7, 116.3, 103.5]").find("config.json: mean: "), std::string::npos);
  EXPECT_NE(timm("\"std\": [0, 0, 0]").find("config.json: std: "), std::string::npos);
  EXPECT_NE(timm("\"crop_pct\": 87.5").find("config.json: crop_pct: "), std::string::npos);
  EXPECT_NE(timm("\"input_size\": [3, 1e30, 1]"), "");
  EXPECT_NE(timm("\"input_size\": [3, 0, 224]"), "");
  EXPECT_EQ(timm("\"mean\": [0.5, 0.5, 0.5], \"crop_pct\": 0.9"), "");
  EXPECT_NE(transformers("\"image_mean\": [123.7, 116.3, 103.5]").find("mean: "), std::string::npos);
  EXPECT_NE(transformers("\"image_std\": [0.5, -0.5, 0.5]").find("std: "), std::string::npos);
  EXPECT_NE(transformers("\"rescale_factor\": 0").find("rescale_factor: "), std::string::npos);
  EXPECT_NE(transformers("\"do_center_crop\": true, \"crop_size\": {\"height\": 0, \"width\": 224}"), "");
  EXPECT_EQ(transformers("\"do_rescale\": false, \"image_mean\": [123.7, 116.3, 103.5]"), "");
}

TEST(Preprocessing, AnotherInputSizeScalesTheResizeBeforeTheCrop) {
  const auto resized = [](Preprocessing settings, int64_t height, int64_t width) {
    set_input_size({height, width}, settings);
    return settings;
  };
  const Preprocessing dinov2{.rule = ResizeRule::huggingface, .resize_shortest = 256, .center_crop = {{224, 224}}};
  EXPECT_EQ(resized(dinov2, 518, 518).resize_shortest, 592);
  EXPECT_EQ(resized(dinov2, 112, 112).resize_shortest, 128);
  EXPECT_EQ(resized(dinov2, 112, 518).resize_shortest, 592) << "the crop is inside the resized image";
  EXPECT_EQ(resized(dinov2, 518, 518).center_crop, (std::array<int64_t, 2>{518, 518}));
  Preprocessing limited = dinov2;
  limited.resize_longest = 300;
  EXPECT_EQ(resized(limited, 448, 448).resize_longest, 600);
  EXPECT_FALSE(resized(dinov2, 448, 448).resize_longest);
  const Preprocessing fixed{.rule = ResizeRule::huggingface, .resize_to = {{256, 128}}, .center_crop = {{224, 112}}};
  EXPECT_EQ(resized(fixed, 448, 56).resize_to, (std::array<int64_t, 2>{512, 64}));
  const Preprocessing exact{.rule = ResizeRule::huggingface, .resize_to = {{224, 224}}};
  EXPECT_EQ(resized(exact, 96, 64).resize_to, (std::array<int64_t, 2>{96, 64}));
  EXPECT_EQ(resized({}, 96, 64).input_size, (std::array<int64_t, 2>{96, 64}));
}

TEST(Preprocessing, OverridesReplaceTheirSettingsAlone) {
  const Preprocessing own{.input_size = {{32, 48}},
                          .interpolation = "bilinear",
                          .mean = std::vector<double>{0.1},
                          .std = std::vector<double>{0.2},
                          .crop_pct = 0.75};
  const auto with = [&](const PreprocessingOverrides& overrides, Preprocessing from) {
    apply_overrides(overrides, 3, {64, 64}, from);
    return from;
  };
  const Preprocessing same = with({}, own);
  EXPECT_EQ(same.mean, own.mean);
  EXPECT_EQ(same.std, own.std);
  EXPECT_EQ(same.interpolation, "bilinear");
  EXPECT_EQ(same.crop_pct, 0.75);
  EXPECT_EQ(same.crop_mode, "center");
  EXPECT_EQ(same.input_size, own.input_size);
  const Preprocessing all = with({.mean = std::vector<double>{0.3},
                                  .std = std::vector<double>{0.4},
                                  .interpolation = "box",
                                  .crop_mode = "squash",
                                  .crop_pct = 0.5},
                                 own);
  EXPECT_EQ(all.mean, std::vector<double>{0.3});
  EXPECT_EQ(all.std, std::vector<double>{0.4});
  EXPECT_EQ(all.interpolation, "box");
  EXPECT_EQ(all.crop_mode, "squash");
  EXPECT_EQ(all.crop_pct, 0.5);
  EXPECT_THROW(with({.crop_pct = 1.5}, own), Error);
  EXPECT_THROW(with({.mean = std::vector<double>{1, 2}}, own), Error);
}

// A preset has the statistics of a dataset; what a model's files or other options say of the geometry is kept.
TEST(Preprocessing, APresetReplacesTheStatisticsAndFillsInTheRest) {
  const auto with = [](const PreprocessingOverrides& overrides, Preprocessing from) {
    apply_overrides(overrides, 3, {64, 80}, from);
    return from;
  };
  const Preprocessing empty = with({.preset = "imagenet"}, {});
  EXPECT_EQ(empty.mean, (std::vector<double>{0.485, 0.456, 0.406}));
  EXPECT_EQ(empty.std, (std::vector<double>{0.229, 0.224, 0.225}));
  EXPECT_EQ(empty.interpolation, "bicubic");
  EXPECT_EQ(empty.crop_pct, 0.875);
  EXPECT_EQ(empty.input_size, (std::array<int64_t, 2>{64, 80}));
  EXPECT_TRUE(empty.missing().empty());
  EXPECT_EQ(with({}, {}).input_size, std::nullopt);
  const Preprocessing own{
      .input_size = {{32, 32}}, .interpolation = "box", .mean = std::vector<double>{0.1}, .crop_pct = 0.75};
  const Preprocessing kept = with({.preset = "inception"}, own);
  EXPECT_EQ(kept.mean, (std::vector<double>{0.5, 0.5, 0.5}));
  EXPECT_EQ(kept.interpolation, "box");
  EXPECT_EQ(kept.crop_pct, 0.75);
  EXPECT_EQ(kept.input_size, own.input_size);
  EXPECT_EQ(with({.preset = "inception", .crop_pct = 0.5}, own).crop_pct, 0.5);
  EXPECT_EQ(with({.preset = "inception"}, {}).crop_pct, 0.9);
  EXPECT_EQ(with({.preset = "cifar10"}, {}).crop_pct, 1);
  EXPECT_EQ(with({.preset = "mnist"}, {}).interpolation, "bilinear");
  EXPECT_EQ(with({.preset = "mnist"}, {}).std, std::vector<double>{0.3081});
  EXPECT_THROW(with({.preset = "coco"}, {}), Error);
}

TEST(Preprocessing, MissingSettingsAreNamedByTheirOptions) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(Preprocessing{}.missing(), (Names{"--mean", "--std", "--interpolation", "--crop-pct", "--image-size"}));
  EXPECT_EQ(Preprocessing{.rule = ResizeRule::huggingface}.missing(),
            (Names{"--mean", "--std", "--interpolation", "--image-size"}));
  EXPECT_EQ((Preprocessing{.input_size = {{8, 8}}, .mean = std::vector<double>{0}, .crop_pct = 1}.missing()),
            (Names{"--std", "--interpolation"}));
}

TEST(Preprocessing, LimitsAreInclusive) {
  EXPECT_EQ(refusal({.crop_pct = 0.01}), "");
  EXPECT_EQ(refusal({.crop_pct = 1}), "");
  EXPECT_NE(refusal({.crop_pct = 0.0099}), "");
  EXPECT_NE(refusal({.crop_pct = 1.0001}), "");
  for (const int64_t side : {1, 65536}) {
    EXPECT_EQ(refusal({.input_size = {{side, 1}}}), "");
    EXPECT_EQ(refusal({.resize_to = {{1, side}}}), "");
    EXPECT_EQ(refusal({.resize_shortest = side}), "");
  }
  for (const int64_t side : {0, 65537}) {
    EXPECT_NE(refusal({.input_size = {{side, 1}}}), "");
    EXPECT_NE(refusal({.resize_to = {{1, side}}}), "");
    EXPECT_NE(refusal({.center_crop = {{1, side}}}), "");
    EXPECT_NE(refusal({.resize_shortest = side}), "");
  }
}

}  // namespace
}  // namespace vitrail::models
