// SPDX-License-Identifier: Apache-2.0
// Messages, presets and limits of preprocessing.
#include <gtest/gtest.h>

#include "tests/models/support.h"
#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/models/preprocessing.h"

namespace vitrail::models {
namespace {

using Numbers = std::vector<double>;
using Pair = std::array<int64_t, 2>;

TEST(Preprocessing, MessagesNameTheOptionOrTheField) {
  EXPECT_ERROR(refusal({.mean = Numbers{0.5, -0.5, 0.5}}), "--mean", "0.5,-0.5,0.5");
  EXPECT_ERROR(refusal({.std = Numbers{0.5, 0.5, 0}}), "--std", "0.5,0.5,0");
  EXPECT_ERROR(refusal({.mean = Numbers{2, 0, 1}}, 3, "file"), "file: mean",
               "2,0,1, which is for pixels from 0 to 255: divide by 255: 0.00784314,0,0.00392157");
  EXPECT_ERROR(refusal({.mean = Numbers{256, 0, 1}}), "--mean", "256,0,1");
  EXPECT_ERROR(refusal({.mean = Numbers{0.5, 0.5}}), "--mean", "2: 0.5,0.5");
  EXPECT_ERROR(refusal({.mean = Numbers{}}), "--mean", "0");
  EXPECT_ERROR(refusal({.std = Numbers{0.5, 0.5}}, 1), "--std", "2: 0.5,0.5");
  EXPECT_ERROR(refusal({.std = Numbers{0.5, 0.5, 0.5}}, 4), "--std", "3: 0.5,0.5,0.5");
  EXPECT_EQ(refusal({.std = Numbers(4, 0.5)}, 4), "");
  EXPECT_ERROR(refusal({.crop_pct = 90}), "--crop-pct", "90 (90 % is 0.9)");
  EXPECT_ERROR(refusal({.crop_pct = 100}, 3, "file"), "file: crop_pct", "100 (100 % is 1)");
  EXPECT_ERROR(refusal({.crop_pct = 1.5}), "--crop-pct", "1.5");
  EXPECT_ERROR(refusal({.crop_pct = 101}), "--crop-pct", "101");
  EXPECT_ERROR(refusal({.crop_pct = 0}), "--crop-pct", "0");
  EXPECT_ERROR(refusal({.input_size = {{224, 0}}}), "--image-size", "0");
  EXPECT_ERROR(refusal({.resize_shortest = 65537}, 3, "file"), "file: size: shortest_edge", "65537");
  EXPECT_ERROR(refusal({.resize_longest = 0}, 3, "file"), "file: size: longest_edge", "0");
  EXPECT_ERROR(refusal({.fill_color = -1}, 3, "file"), "file: fill_color", "-1");
  EXPECT_EQ(refusal({.fill_color = 255}, 3, "file"), "");
}

TEST(Preprocessing, TheBrightestPixelFollowsTheRescaling) {
  const auto with = [](double factor, const Numbers& mean, ResizeRule rule = ResizeRule::huggingface) {
    return refusal({.mean = mean, .rule = rule, .rescale_factor = factor}, 3, "file");
  };
  EXPECT_EQ(with(1.0 / 255, {1}), "");
  EXPECT_EQ(with(0.00392156862745098, {1}), "") << "with a rounding error";
  EXPECT_EQ(with(1, {255}), "");
  EXPECT_ERROR(with(1, {256}), "file: image_mean", "256");
  EXPECT_EQ(with(0.5, {127.5}), "");
  EXPECT_ERROR(with(0.5, {128}), "file: image_mean", "128");
  EXPECT_ERROR(with(0, {0.5}), "file: rescale_factor", "0");
  EXPECT_ERROR(with(-1, {0.5}), "file: rescale_factor", "-1");
  EXPECT_ERROR(with(1.5, {0.5}), "file: rescale_factor", "1.5");
  EXPECT_EQ(with(0, {0.5}, ResizeRule::timm), "") << "timm has none";
  // No normalisation: mean 0 and std 1, whatever the range.
  EXPECT_EQ(refusal({.mean = Numbers{0}, .std = Numbers{1}, .rule = ResizeRule::huggingface, .rescale_factor = 1e-3}),
            "");
  EXPECT_NE(refusal({.mean = Numbers{0.1}, .std = Numbers{1}, .rule = ResizeRule::huggingface, .rescale_factor = 1e-3}),
            "");
  EXPECT_NE(refusal({.mean = Numbers{0, 0, 0},
                     .std = Numbers{1, 1, 0.9},
                     .rule = ResizeRule::huggingface,
                     .rescale_factor = 1e-3}),
            "");
}

TEST(Preprocessing, PresetsAreThoseOfTheirDatasets) {
  struct Preset {
    const char* name;
    Numbers mean, std;
    const char* interpolation;
    double crop_pct;
  };
  const Preset presets[] = {{"imagenet", {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}, "bicubic", 0.875},
                            {"inception", {0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}, "bicubic", 0.9},
                            {"cifar10", {0.4914, 0.4822, 0.4465}, {0.2470, 0.2435, 0.2616}, "bicubic", 1},
                            {"mnist", {0.1307}, {0.3081}, "bilinear", 1}};
  for (const Preset& preset : presets) {
    Preprocessing empty, own{.interpolation = "box", .mean = Numbers{0}, .std = Numbers{1}, .crop_pct = 0.5};
    apply_preset(preset.name, empty);
    apply_preset(preset.name, own);
    EXPECT_EQ(empty.mean, preset.mean);
    EXPECT_EQ(empty.std, preset.std);
    EXPECT_EQ(empty.interpolation, preset.interpolation);
    EXPECT_EQ(empty.crop_pct, preset.crop_pct);
    EXPECT_EQ(own.mean, preset.mean);
    EXPECT_EQ(own.std, preset.std);
    EXPECT_EQ(own.interpolation, "box");
    EXPECT_EQ(own.crop_pct, 0.5);
  }
  Preprocessing none;
  EXPECT_ERROR(testing::error_of([&] { apply_preset("coco", none); }), "--preset", "'coco'");
}

TEST(Preprocessing, AScaledResizeIsRounded) {
  const auto shortest = [](int64_t size, const Pair& crop, const Pair& to) {
    Preprocessing settings{.rule = ResizeRule::huggingface, .resize_shortest = size, .center_crop = crop};
    set_input_size(to, settings);
    return settings.resize_shortest;
  };
  EXPECT_EQ(shortest(256, {224, 224}, {225, 225}), 257);  // 257.14
  EXPECT_EQ(shortest(250, {200, 200}, {202, 202}), 253);  // 252.5
  EXPECT_EQ(shortest(100, {80, 100}, {40, 20}), 40);      // by the longer edges, 100 and 40
  Preprocessing sized{.input_size = {{100, 50}}, .rule = ResizeRule::huggingface, .resize_shortest = 110};
  set_input_size({200, 300}, sized);
  EXPECT_EQ(sized.resize_shortest, 330) << "without a crop by the input's size";
  EXPECT_FALSE(sized.center_crop);
  Preprocessing unknown{.rule = ResizeRule::huggingface, .resize_shortest = 110};
  set_input_size({200, 300}, unknown);
  EXPECT_EQ(unknown.resize_shortest, 110);
  Preprocessing cropped{.rule = ResizeRule::huggingface, .resize_to = {{60, 90}}, .center_crop = {{40, 30}}};
  set_input_size({20, 60}, cropped);
  EXPECT_EQ(cropped.resize_to, (Pair{30, 180}));
  EXPECT_EQ(cropped.center_crop, (Pair{20, 60}));
  EXPECT_EQ(cropped.input_size, (Pair{20, 60}));
}

TEST(Preprocessing, DefaultsAssumeNothing) {
  const Preprocessing none;
  EXPECT_EQ(none.rule, ResizeRule::timm);
  EXPECT_EQ(none.crop_mode, "center");
  EXPECT_EQ(none.rescale_factor, 1.0 / 255);
  EXPECT_FALSE(none.resize_floats);
  Preprocessing from;
  apply_overrides({.crop_mode = "border"}, 3, {8, 8}, from);
  EXPECT_EQ(from.crop_mode, "border");
  EXPECT_FALSE(from.input_size) << "only a preset fills in the size";
}

}  // namespace
}  // namespace vitrail::models
