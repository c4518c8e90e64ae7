// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/augment/augment.h"

#include <cmath>
#include <map>
#include <set>

#include "tests/data/augment_testing.h"
#include "tests/data/support.h"
#include "vitrail/data/augment/random_erasing_internal.h"
#include "vitrail/data/augment/random_resized_crop_internal.h"
#include "vitrail/image/crop_internal.h"
#include "vitrail/image/resize_internal.h"

namespace vitrail::data {
namespace {

using image::Image;

Image augmented(const AugmentOptions& options, const Image& source, const AugmentKey& key, int64_t size = 32) {
  return Augmentation(options, transform(size)).augmented_image(source, key);
}

AugmentOptions all_transforms() {
  AugmentOptions options;
  options.padded_crop = PaddedCrop{};
  options.flip = Flip::random;
  options.affine = RandomAffine{.degrees = 10, .shift = {0.1, 0.1}, .scale = {0.9, 1.1}};
  options.policy = "rand-m9-mstd0.5-inc1";
  options.color_jitter = ColorJitter{.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.1};
  options.grayscale = 0.5;
  options.blur.emplace();
  options.solarize.emplace();
  options.erasing.probability = 1;
  return options;
}

std::vector<float> values(const Augmentation& augmentation, const Image& source, const AugmentKey& key) {
  std::vector<float> out(static_cast<size_t>(source.channels) * 32 * 32);
  augmentation.apply_into(source, key, out.data());
  return out;
}

TEST(Augment, IsAFunctionOfItsKey) {
  const Augmentation augmentation(all_transforms(), transform(32));
  const Image source = noise_image(32, 32);
  const AugmentKey key{.seed = 1, .epoch = 2, .sample = 3};
  const std::vector<float> result = values(augmentation, source, key);
  EXPECT_EQ(values(augmentation, source, key), result);
  EXPECT_NE(values(augmentation, source, {.seed = 2, .epoch = 2, .sample = 3}), result);
  EXPECT_NE(values(augmentation, source, {.seed = 1, .epoch = 3, .sample = 3}), result);
  EXPECT_NE(values(augmentation, source, {.seed = 1, .epoch = 2, .sample = 4}), result);
  EXPECT_NE(values(augmentation, source, {.seed = 1, .epoch = 2, .sample = 3, .repeat = 1}), result);
}

TEST(Augment, SwitchingATransformOnDoesNotChangeTheDrawsOfOthers) {
  AugmentOptions flips, both;
  flips.flip = both.flip = Flip::random;
  both.padded_crop = PaddedCrop{.padding = 0};
  both.affine = RandomAffine{};
  const Image source = noise_image(32, 32);
  for (int64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(augmented(flips, source, {.sample = i}).pixels, augmented(both, source, {.sample = i}).pixels);
  }
}

TEST(Augment, OffEpochLeavesCropAndFlip) {
  AugmentOptions options = all_transforms(), plain;
  options.off_epoch = 5;
  plain.padded_crop = options.padded_crop, plain.flip = options.flip;
  const Augmentation limited(options, transform(32)), crop_and_flip(plain, transform(32));
  const Image source = noise_image(32, 32);
  EXPECT_NE(values(limited, source, {.epoch = 4}), values(crop_and_flip, source, {.epoch = 4}));
  EXPECT_EQ(values(limited, source, {.epoch = 5}), values(crop_and_flip, source, {.epoch = 5}));
}

TEST(Augment, ViewsRepeatAndPlainViewsDiffer) {
  AugmentOptions options = all_transforms();
  options.flip = Flip::alternate;
  options.views = 2;
  options.off_epoch = 6;
  const Augmentation augmentation(options, transform(32));
  const Image source = noise_image(32, 32);
  auto at = [&](int64_t epoch) { return values(augmentation, source, {.seed = 1, .epoch = epoch, .sample = 3}); };
  EXPECT_EQ(at(0), at(2));
  EXPECT_EQ(at(1), at(5));
  EXPECT_EQ(at(6), at(8));
  EXPECT_NE(at(0), at(1));
  EXPECT_NE(at(0), at(6));
  for (const auto& [epoch, view] : {std::pair{0, 0}, {1, 1}, {4, 0}, {6, 2}, {7, 3}}) {
    EXPECT_EQ(options.view_of(epoch), view);
  }
  EXPECT_EQ(all_transforms().view_of(3), -1);
}

TEST(Augment, EpochsAfterViewEpochsHaveDrawsOfTheirOwn) {
  const Image source = noise_image(32, 32);
  AugmentOptions plain = all_transforms();
  plain.off_epoch = 0;
  const Augmentation strong(all_transforms(), transform(32)), weak(plain, transform(32));
  for (const int64_t view_epochs : {0, 3}) {
    AugmentOptions options = all_transforms();
    options.views = 2;
    options.view_epochs = view_epochs;
    const Augmentation augmentation(options, transform(32));
    for (int64_t epoch = 0; epoch < 6; ++epoch) {
      const bool shows_view = epoch < view_epochs;
      const int64_t as = shows_view ? epoch % 2 : 2 + epoch - view_epochs;
      EXPECT_EQ(options.view_of(epoch), shows_view ? epoch % 2 : -1);
      EXPECT_EQ(values(augmentation, source, {.seed = 1, .epoch = epoch, .sample = 3}),
                values(shows_view ? weak : strong, source, {.seed = 1, .epoch = as, .sample = 3}));
    }
  }
}

TEST(Augment, PolicyIsAppliedToAFractionOfTheImages) {
  AugmentOptions options;
  options.policy = "rand-m10-n1-p1";
  options.policy_share = 0.3;
  const Augmentation augmentation(options, transform(32));
  const Image source = noise_image(32, 32);
  int changed = 0;
  constexpr int kDraws = 4000;
  for (int64_t i = 0; i < kDraws; ++i) {
    if (augmentation.augmented_image(source, {.sample = i}).pixels != source.pixels) ++changed;
  }
  // Autocontrast and equalize, 2 of the 15 operations, can leave noise unchanged.
  EXPECT_LT(changed, 0.3 * kDraws + 5 * std::sqrt(0.21 * kDraws));
  EXPECT_GT(changed, 0.3 * kDraws * 12 / 15 - 5 * std::sqrt(0.21 * kDraws));
}

TEST(Augment, FlipsHalfOrEverySecondEpoch) {
  AugmentOptions random, alternate;
  random.flip = Flip::random, alternate.flip = Flip::alternate;
  const Image source = noise_image(32, 32);
  Image mirrored = source;
  image::mirror(mirrored);
  int flipped = 0;
  constexpr int kDraws = 1000;
  const Augmentation at_random(random, transform(32)), alternating(alternate, transform(32));
  for (int64_t i = 0; i < kDraws; ++i) {
    if (at_random.augmented_image(source, {.sample = i}).pixels == mirrored.pixels) ++flipped;
    const bool first = alternating.augmented_image(source, {.epoch = 0, .sample = i}).pixels == mirrored.pixels;
    EXPECT_EQ(alternating.augmented_image(source, {.epoch = 1, .sample = i}).pixels == mirrored.pixels, !first);
    EXPECT_EQ(alternating.augmented_image(source, {.epoch = 2, .sample = i}).pixels == mirrored.pixels, first);
  }
  EXPECT_NEAR(flipped, kDraws / 2, 5 * std::sqrt(kDraws / 4.0));
}

TEST(Augment, PaddedCropsReachEveryCornerAndNoFurther) {
  AugmentOptions options;
  options.padded_crop = PaddedCrop{.padding = 2};
  options.fill = {7};
  const Image source = noise_image(32, 32);
  const auto bytes = [](const Image& image) { return std::string(image.pixels.begin(), image.pixels.end()); };
  std::set<std::string> seen, possible;
  for (int64_t i = 0; i < 500; ++i) seen.insert(bytes(augmented(options, source, {.sample = i})));
  for (int64_t left = -2; left <= 2; ++left) {
    for (int64_t top = -2; top <= 2; ++top) {
      possible.insert(bytes(image::crop(source, {left, top, 32, 32}, image::Padding::constant, {7, 7, 7})));
    }
  }
  EXPECT_EQ(seen, possible);
}

TEST(RandomResizedCrop, AreaAndRatioAreUniform) {
  constexpr int kDraws = 20000;
  RandomStream random(random_key("windows"));
  const RandomResizedCrop options;
  int64_t small = 0, wide = 0, left = 0;
  for (int i = 0; i < kDraws; ++i) {
    const image::Window w = resized_crop_window(options, 1000, 1000, random);
    ASSERT_TRUE(w.left >= 0 && w.top >= 0 && w.left + w.width <= 1000 && w.top + w.height <= 1000);
    const double area = static_cast<double>(w.width * w.height) / 1e6;
    EXPECT_GT(area, 0.079);
    if (area < 0.3) ++small;
    if (w.width > w.height) ++wide;
    if (w.left * 2 < 1000 - w.width) ++left;
  }
  // Large areas are redrawn if their ratio does not fit, so small ones are slightly more frequent than
  // (0.3 − 0.08) / 0.92.
  EXPECT_GT(small, 0.2391 * kDraws - 5 * std::sqrt(0.18 * kDraws));
  EXPECT_LT(small, 0.29 * kDraws);
  EXPECT_NEAR(wide, kDraws / 2, 5 * std::sqrt(kDraws / 4.0) + 0.01 * kDraws) << "squares count as not wide";
  EXPECT_NEAR(left, kDraws / 2, 5 * std::sqrt(kDraws / 4.0) + 0.01 * kDraws);
}

TEST(RandomResizedCrop, FallsBackToTheCentreAtTheNearestRatio) {
  RandomStream random(random_key("strip"));
  const RandomResizedCrop options{.scale = {1, 1}};
  const image::Window wide = resized_crop_window(options, 300, 30, random);
  EXPECT_EQ(wide.width, 40);
  EXPECT_EQ(wide.height, 30);
  EXPECT_EQ(wide.left, 130);
  const image::Window high = resized_crop_window(options, 30, 300, random);
  EXPECT_EQ(high.height, 40);
  EXPECT_EQ(high.top, 130);
}

TEST(RandomResizedCrop, IsThatWindowResized) {
  AugmentOptions options;
  options.random_resized_crop = RandomResizedCrop{.scale = {1, 1}, .ratio = {1, 1}};
  const Image source = noise_image(50, 50);
  EXPECT_EQ(augmented(options, source, {}).pixels, resize(source, 32, 32, image::Filter::bicubic).pixels);
  EXPECT_EQ(augmented(options, noise_image(13, 90), {}).width, 32);
}

TEST(RandomErasing, ErasesTheExpectedFractionOfTheImage) {
  RandomErasing options;
  options.probability = 0.25;
  RandomStream random(random_key("erasing"));
  constexpr int kDraws = 4000, kSize = 64 * 64;
  int erased = 0;
  double area = 0;
  for (int i = 0; i < kDraws; ++i) {
    std::vector<float> plane(kSize, 100.0f);
    erase(options, 1, 64, 64, random, plane.data());
    const auto pixels = std::count_if(plane.begin(), plane.end(), [](float x) { return x != 100.0f; });
    if (pixels == 0) continue;
    ++erased;
    area += static_cast<double>(pixels) / kSize;
    EXPECT_GT(pixels, 0.015 * kSize);
    EXPECT_LT(pixels, 0.35 * kSize);
  }
  EXPECT_NEAR(erased, kDraws / 4, 5 * std::sqrt(kDraws * 0.1875));
  // Uniform in [0.02, 1/3] with mean 0.177 and deviation 0.09; large elongated rectangles do not fit and are redrawn.
  EXPECT_NEAR(area / erased, 0.177, 0.02);
}

// The rectangles may overlap, so they erase at most their share each.
TEST(RandomErasing, SeveralRectanglesShareTheArea) {
  RandomErasing options;
  options.probability = 1, options.area = {0.4, 0.4}, options.ratio = {1, 1}, options.count = {4, 4};
  RandomStream random(random_key("several"));
  for (int i = 0; i < 20; ++i) {
    std::vector<float> plane(100 * 100, 100.0f);
    erase(options, 1, 100, 100, random, plane.data());
    const auto pixels = std::count_if(plane.begin(), plane.end(), [](float x) { return x != 100.0f; });
    EXPECT_GE(pixels, 32 * 32);  // 10 % of the area are 31.6 × 31.6, rounded
    EXPECT_LE(pixels, 4 * 32 * 32);
  }
}

TEST(RandomErasing, ModesDetermineTheNewValues) {
  RandomErasing options;
  options.probability = 1, options.area = {0.2, 0.2}, options.ratio = {1, 1};
  const auto erased = [&](RandomErasing::Mode mode) {
    options.mode = mode;
    std::vector<float> planes(2 * 32 * 32, 100.0f);
    RandomStream random(random_key("modes"));
    erase(options, 2, 32, 32, random, planes.data());
    std::vector<std::set<float>> seen(2);
    for (size_t i = 0; i < planes.size(); ++i) {
      if (planes[i] != 100.0f) seen[i / 1024].insert(planes[i]);
    }
    return seen;
  };
  EXPECT_EQ(erased(RandomErasing::Mode::constant), (std::vector<std::set<float>>{{0.0f}, {0.0f}}));
  const auto colours = erased(RandomErasing::Mode::colour);
  EXPECT_EQ(colours[0].size(), 1u);
  EXPECT_EQ(colours[1].size(), 1u);
  EXPECT_NE(colours[0], colours[1]);
  EXPECT_GT(erased(RandomErasing::Mode::pixel)[0].size(), 190u);
}

TEST(Augment, GreyImagesPassAllTransforms) {
  image::EvalTransform grey = transform(32);
  grey.mean = {0.5}, grey.std = {0.5};
  const Augmentation augmentation(all_transforms(), grey);
  const Image source = noise_image(32, 32, 1);
  const std::vector<float> result = values(augmentation, source, {});
  EXPECT_TRUE(std::all_of(result.begin(), result.end(), [](float x) { return std::isfinite(x); }));
}

TEST(Augment, OptionsOutOfRangeAreErrorsThatNameThem) {
  const auto refused = [](const std::string& option, auto change) {
    AugmentOptions options;
    change(options);
    EXPECT_TRUE(contains(error_of([&] { Augmentation(options, transform(32)); }), option)) << option;
  };
  refused("random_resized_crop.scale", [](auto& o) { o.random_resized_crop = RandomResizedCrop{.scale = {0, 1}}; });
  refused("random_resized_crop.ratio", [](auto& o) { o.random_resized_crop = RandomResizedCrop{.ratio = {2, 1}}; });
  refused("interpolation", [](auto& o) { o.random_resized_crop = RandomResizedCrop{.interpolation = {}}; });
  refused("padded_crop", [](auto& o) { o.padded_crop = PaddedCrop{.padding = -1}; });
  refused("padded_crop", [](auto& o) { o.padded_crop = PaddedCrop{}, o.random_resized_crop = RandomResizedCrop{}; });
  refused("affine.degrees", [](auto& o) { o.affine = RandomAffine{.degrees = 200}; });
  refused("affine.shift", [](auto& o) { o.affine = RandomAffine{.shift = {0, 2}}; });
  refused("affine.interpolation", [](auto& o) { o.affine = RandomAffine{.interpolation = image::Filter::lanczos}; });
  refused("policy", [](auto& o) { o.policy = "strong"; });
  refused("policy_share", [](auto& o) { o.policy_share = -0.1; });
  refused("color_jitter.hue", [](auto& o) { o.color_jitter = ColorJitter{.hue = 0.6}; });
  refused("color_jitter.contrast", [](auto& o) { o.color_jitter = ColorJitter{.contrast = -1}; });
  refused("erasing.area", [](auto& o) { o.erasing.area = {0.5, 0.2}; });
  refused("erasing.count", [](auto& o) { o.erasing.count = {0, 1}; });
  refused("fill", [](auto& o) { o.fill = {1, 2}; });
  refused("fill", [](auto& o) { o.fill = {256}; });
}

}  // namespace
}  // namespace vitrail::data
