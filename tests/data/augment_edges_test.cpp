// SPDX-License-Identifier: Apache-2.0
// Single transforms of the augmentation, and the limits of their options.
#include <cmath>

#include "tests/data/augment_testing.h"
#include "tests/data/support.h"
#include "vitrail/base/random.h"
#include "vitrail/data/augment/augment.h"
#include "vitrail/data/augment/auto_augment_internal.h"
#include "vitrail/data/augment/auto_augment_policies_internal.h"
#include "vitrail/data/augment/random_erasing_internal.h"
#include "vitrail/data/augment/random_resized_crop_internal.h"
#include "vitrail/image/affine_internal.h"
#include "vitrail/image/crop_internal.h"
#include "vitrail/image/enhance_internal.h"
#include "vitrail/image/point_operations_internal.h"

namespace vitrail::data {
namespace {

using image::Image;
using Pixels = std::vector<uint8_t>;

TEST(Flip, AlternatesWithEpochsAndRepeats) {
  AugmentOptions options;
  options.flip = Flip::alternate;
  const Augmentation augmentation(options, transform(8));
  const Image source = noise_image(8, 8);
  const auto flipped = [&](int64_t epoch, int64_t sample, int64_t repeat) {
    const AugmentKey key{.seed = 1, .epoch = epoch, .sample = sample, .repeat = repeat};
    return augmentation.augmented_image(source, key).pixels != source.pixels;
  };
  int first = 0;
  for (int64_t sample = 0; sample < 40; ++sample) {
    first += flipped(0, sample, 0);
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      for (int64_t repeat = 0; repeat < 3; ++repeat) {
        EXPECT_EQ(flipped(epoch, sample, repeat), flipped(0, sample, 0) != ((epoch + repeat) % 2 == 1)) << sample;
      }
    }
  }
  EXPECT_GT(first, 5);
  EXPECT_LT(first, 35);
}

// The factor of torchvision's ColorJitter is at least 0: an image becomes black, and never a negative of itself.
TEST(ColorJitter, FactorsAreInTheirRange) {
  for (const double range : {0.3, 1.0, 3.0}) {
    AugmentOptions options;
    options.color_jitter = ColorJitter{.brightness = range};
    const Augmentation augmentation(options, transform(1));
    const Image source{1, 1, 3, {40, 60, 10}};
    double low = 255, high = 0;
    for (int64_t sample = 0; sample < 500; ++sample) {
      const double factor = augmentation.augmented_image(source, {.sample = sample}).pixels[1] / 60.0;
      low = std::min(low, factor), high = std::max(high, factor);
      EXPECT_GE(factor, std::max(0.0, 1 - range) - 1 / 60.0);
      EXPECT_LE(factor, 1 + range);
    }
    EXPECT_LT(low, std::max(0.0, 1 - range) + 0.1 * range + 1 / 60.0);
    EXPECT_GT(high, 1 + 0.9 * range - 1 / 60.0);
    if (range < 3) continue;
    int black = 0;
    for (int64_t sample = 0; sample < 500; ++sample) {
      black += augmentation.augmented_image(source, {.sample = sample}).pixels[1] < 6;
    }
    EXPECT_LT(black, 500 * 0.1) << "uniform in 0 … 4: below 0.1 in a fortieth";
  }
}

// Brightness changes a grey image in proportion, contrast no image of one colour, saturation and hue no grey one.
TEST(ColorJitter, EachFactorIsThatOfItsOperation) {
  const Image grey{2, 1, 3, {90, 90, 90, 30, 30, 30}}, red{2, 1, 3, {90, 30, 30, 90, 30, 30}};
  const auto changes = [](const ColorJitter& jitter, const Image& image) {
    AugmentOptions options;
    options.color_jitter = jitter;
    image::EvalTransform square = transform(1);
    square.size = {1, 2};
    const Augmentation augmentation(options, square);
    int changed = 0;
    for (int64_t sample = 0; sample < 100; ++sample)
      changed += augmentation.augmented_image(image, {.sample = sample}).pixels != image.pixels;
    return changed > 50;
  };
  const auto expect = [&](const ColorJitter& jitter, bool of_grey, bool of_red, const char* name) {
    EXPECT_EQ(changes(jitter, grey), of_grey) << name;
    EXPECT_EQ(changes(jitter, red), of_red) << name;
  };
  expect({.brightness = 0.9}, true, true, "brightness");
  expect({.contrast = 0.9}, true, true, "contrast of channels");
  expect({.saturation = 0.9}, false, true, "saturation");
  expect({.hue = 0.5}, false, true, "hue");
  expect({}, false, false, "none");
}

TEST(ColorJitter, IsAppliedWithItsProbability) {
  AugmentOptions options;
  options.color_jitter = ColorJitter{.hue = 0.5, .probability = 0.25};
  const Augmentation augmentation(options, transform(2));
  const Image source = noise_image(2, 2);
  int changed = 0;
  for (int64_t sample = 0; sample < 2000; ++sample) {
    changed += augmentation.augmented_image(source, {.sample = sample}).pixels != source.pixels;
  }
  EXPECT_NEAR(changed, 500, 5 * std::sqrt(2000 * 0.1875) + 20) << "some shifts are too small to change a pixel";
}

TEST(Fill, OneValueIsThatOfAllChannelsAndTheMeanThatOfTimmsPolicy) {
  AugmentOptions options;
  options.padded_crop = PaddedCrop{.padding = 10};
  const Image white{1, 1, 3, {255, 255, 255}};
  const auto outside = [&](const std::vector<int>& fill) {
    options.fill = fill;
    const Augmentation augmentation(options, transform(1));
    for (int64_t sample = 0;; ++sample) {
      const Pixels pixels = augmentation.augmented_image(white, {.sample = sample}).pixels;
      if (pixels != white.pixels) return pixels;
    }
  };
  EXPECT_EQ(outside({}), (Pixels{0, 0, 0}));
  EXPECT_EQ(outside({7}), (Pixels{7, 7, 7}));
  EXPECT_EQ(outside({7, 8, 9}), (Pixels{7, 8, 9}));
}

// timm fills with round(255 · mean), torchvision's policies with black, both with options.fill if it is given.
TEST(Fill, OfAPolicyIsTheReferences) {
  const Image white = [] {
    Image image = image::make_image(8, 8, 3);
    std::fill(image.pixels.begin(), image.pixels.end(), uint8_t{255});
    return image;
  }();
  const auto darkest = [&](const std::string& policy, const std::vector<int>& fill) {
    AugmentOptions options;
    options.policy = policy;
    options.policy_interpolation = {image::Filter::nearest};
    options.fill = fill;
    image::EvalTransform with_mean = transform(8);
    with_mean.mean = {0.1, 0.5, 0.9};
    const Augmentation augmentation(options, with_mean);
    std::set<Pixels> seen;
    for (int64_t sample = 0; sample < 300; ++sample) {
      const Image result = augmentation.augmented_image(white, {.sample = sample});
      for (size_t i = 0; i < result.pixels.size(); i += 3)
        seen.insert({result.pixels[i], result.pixels[i + 1], result.pixels[i + 2]});
    }
    return seen;
  };
  EXPECT_TRUE(darkest("rand-m9-n1-p1", {}).contains({26, 128, 230}));
  EXPECT_TRUE(darkest("rand-m9-n1-p1", {1, 2, 3}).contains({1, 2, 3}));
  EXPECT_FALSE(darkest("randaugment-n1-m9", {}).contains({26, 128, 230}));
  EXPECT_TRUE(darkest("randaugment-n1-m9", {1, 2, 3}).contains({1, 2, 3}));
}

TEST(PolicyOperations, AreThoseOfTheirNames) {
  const Image source = noise_image(7, 5);
  const image::Fill fill{1, 2, 3};
  const auto expect = [&](const OpCall& call, const std::function<void(Image&)>& change) {
    Image got = source, want = source;
    apply(call, got, fill);
    change(want);
    EXPECT_EQ(got.pixels, want.pixels) << name_of(call.op);
  };
  constexpr image::Filter filter = image::Filter::bilinear;
  const auto map = [&](const image::AffineMatrix& matrix) {
    return [&fill, matrix](Image& i) { i = image::affine(i, matrix, filter, fill); };
  };
  expect({ImageOp::identity, 3}, [](Image&) {});
  expect({ImageOp::autocontrast}, [](Image& i) { image::autocontrast(i); });
  expect({ImageOp::equalize}, [](Image& i) { image::equalize(i); });
  expect({ImageOp::invert}, [](Image& i) { image::invert(i); });
  expect({ImageOp::rotate, 20, filter}, [&](Image& i) { i = image::rotate(i, 20, filter, fill); });
  expect({ImageOp::posterize, 3}, [](Image& i) { image::posterize(i, 3); });
  expect({ImageOp::solarize, 99.5}, [](Image& i) { image::solarize(i, 99.5); });
  expect({ImageOp::solarize_add, 30}, [](Image& i) { image::solarize_add(i, 30); });
  expect({ImageOp::color, 0.3}, [](Image& i) { image::adjust_color(i, 0.3); });
  expect({ImageOp::contrast, 0.3}, [](Image& i) { image::adjust_contrast(i, 0.3); });
  expect({ImageOp::brightness, 0.3}, [](Image& i) { image::adjust_brightness(i, 0.3); });
  expect({ImageOp::sharpness, 0.3}, [](Image& i) { image::adjust_sharpness(i, 0.3); });
  expect({ImageOp::shear_x, 0.2, filter}, map({1, 0.2, 0, 0, 1, 0}));
  expect({ImageOp::shear_y, 0.2, filter}, map({1, 0, 0, 0.2, 1, 0}));
  expect({ImageOp::translate_x, 2, filter}, map({1, 0, 2, 0, 1, 0}));
  expect({ImageOp::translate_y, 2, filter}, map({1, 0, 0, 0, 1, 2}));
}

TEST(PolicySections, AreKeysWithNumbers) {
  EXPECT_EQ(parse_sections("rand-m9-mstd0.5", {"m", "mstd"}), (std::map<std::string, double>{{"m", 9}, {"mstd", 0.5}}));
  EXPECT_TRUE(parse_sections("rand", {"m"}).empty());
  for (const char* name : {"rand-", "rand-m", "rand-9x", "rand-m9-m9", "rand-x9", "rand-m9-", "rand-m1e"}) {
    EXPECT_THROW(parse_sections(name, {"m"}), Error) << name;
  }
  for (const double value : {0.0, 3.0, 7.0}) EXPECT_EQ(integer_section("p", "m", value, 0, 7), value);
  for (const double value : {-1.0, 7.5, 8.0}) EXPECT_THROW(integer_section("p", "m", value, 0, 7), Error) << value;
}

// timm draws another rectangle if a side would be as long as the image's.
TEST(RandomErasing, ARectangleIsShorterThanTheImageOnBothSides) {
  RandomErasing options;
  options.probability = 1, options.mode = RandomErasing::Mode::constant, options.area = {0.5, 1};
  RandomStream random(random_key("long"));
  for (int i = 0; i < 300; ++i) {
    std::vector<float> plane(6 * 5, 1.0F);
    erase(options, 1, 6, 5, random, plane.data());
    for (int64_t y = 0; y < 6; ++y) {
      const float* row = plane.data() + y * 5;
      EXPECT_TRUE(std::any_of(row, row + 5, [](float value) { return value != 0; }));
    }
    for (int64_t x = 0; x < 5; ++x) {
      bool kept = false;
      for (int64_t y = 0; y < 6; ++y) kept = kept || plane[static_cast<size_t>(y * 5 + x)] != 0;
      EXPECT_TRUE(kept);
    }
  }
}

// timm's aspect ratio is that of height to width.
TEST(RandomErasing, TheRatioIsThatOfHeightToWidth) {
  RandomErasing options;
  options.probability = 1, options.mode = RandomErasing::Mode::constant, options.area = {0.01, 0.01},
  options.ratio = {4, 4};
  RandomStream random(random_key("ratio"));
  std::vector<float> plane(100 * 100, 1.0F);
  erase(options, 1, 100, 100, random, plane.data());
  int64_t rows = 0, columns = 0;
  for (int64_t i = 0; i < 100; ++i) {
    bool in_row = false, in_column = false;
    for (int64_t k = 0; k < 100; ++k) {
      in_row = in_row || plane[static_cast<size_t>(100 * i + k)] == 0;
      in_column = in_column || plane[static_cast<size_t>(100 * k + i)] == 0;
    }
    rows += in_row, columns += in_column;
  }
  EXPECT_EQ(rows, 20);
  EXPECT_EQ(columns, 5);
}

TEST(RandomErasing, ReachesEachCornerOfTheImage) {
  RandomErasing options;
  options.probability = 1, options.mode = RandomErasing::Mode::constant, options.area = {0.3, 0.3},
  options.ratio = {1, 1};
  RandomStream random(random_key("corners"));
  std::array<bool, 4> reached{};
  for (int i = 0; i < 300; ++i) {
    std::vector<float> plane(64, 1.0F);
    erase(options, 1, 8, 8, random, plane.data());
    const size_t corners[] = {0, 7, 56, 63};
    for (size_t c = 0; c < 4; ++c) reached[c] = reached[c] || plane[corners[c]] == 0;
  }
  EXPECT_EQ(reached, (std::array<bool, 4>{true, true, true, true}));
}

TEST(RandomResizedCrop, WindowsAreInsideAndOfTheirRatio) {
  RandomStream random(random_key("ratios"));
  const RandomResizedCrop options{.scale = {0.2, 0.9}, .ratio = {0.5, 2}};
  for (const auto& [width, height] :
       {std::pair<int64_t, int64_t>{100, 100}, {300, 40}, {40, 300}, {1, 1}, {1, 500}, {500, 1}}) {
    int64_t right = 0, bottom = 0, left = width, top = height;
    for (int i = 0; i < 400; ++i) {
      const image::Window w = resized_crop_window(options, width, height, random);
      EXPECT_GE(w.width, 1);
      EXPECT_GE(w.height, 1);
      right = std::max(right, w.left + w.width), bottom = std::max(bottom, w.top + w.height);
      left = std::min(left, w.left), top = std::min(top, w.top);
      if (std::min(width, height) < 40) continue;
      const double ratio = static_cast<double>(w.width) / static_cast<double>(w.height);
      EXPECT_GT(ratio, 0.5 * 0.9) << width << " " << height;
      EXPECT_LT(ratio, 2 * 1.1) << width << " " << height;
    }
    EXPECT_GE(left, 0);
    EXPECT_GE(top, 0);
    EXPECT_LE(right, width);
    EXPECT_LE(bottom, height);
  }
  const RandomResizedCrop whole{.scale = {1, 1}, .ratio = {1, 1}};
  const image::Window w = resized_crop_window(whole, 17, 17, random);
  EXPECT_TRUE(w.left == 0 && w.top == 0 && w.width == 17 && w.height == 17);
  const image::Window tall = resized_crop_window({.scale = {1, 1}, .ratio = {0.5, 2}}, 10, 101, random);
  EXPECT_EQ(tall.width, 10);
  EXPECT_EQ(tall.height, 20) << "the nearest ratio";
  EXPECT_EQ(tall.top, 40);
}

TEST(AugmentOptions, AreValidUpToTheirLimits) {
  const auto accepted = [](const auto& change) {
    AugmentOptions options;
    change(options);
    EXPECT_NO_THROW(Augmentation(options, transform(8)));
  };
  const auto refused = [](const auto& change) {
    AugmentOptions options;
    change(options);
    EXPECT_THROW(Augmentation(options, transform(8)), Error);
  };
  accepted([](auto& o) { o.affine = RandomAffine{.degrees = 180, .shift = {1, 0}, .scale = {0.5, 0.5}}; });
  refused([](auto& o) { o.affine = RandomAffine{.degrees = -1}; });
  refused([](auto& o) { o.affine = RandomAffine{.scale = {0, 1}}; });
  refused([](auto& o) { o.affine = RandomAffine{.shift = {-0.1, 0}}; });
  accepted([](auto& o) { o.random_resized_crop = RandomResizedCrop{.scale = {1, 1}, .ratio = {2, 2}}; });
  refused([](auto& o) { o.random_resized_crop = RandomResizedCrop{.scale = {0.5, 1.1}}; });
  refused([](auto& o) { o.random_resized_crop = RandomResizedCrop{.scale = {0.6, 0.5}}; });
  accepted([](auto& o) { o.padded_crop = PaddedCrop{.padding = 0}; });
  refused([](auto& o) { o.padded_crop = PaddedCrop{.padding = 10001}; });
  accepted([](auto& o) { o.color_jitter = ColorJitter{.brightness = 100, .hue = 0.5, .probability = 0}; });
  refused([](auto& o) { o.color_jitter = ColorJitter{.probability = 1.1}; });
  refused([](auto& o) { o.color_jitter = ColorJitter{.saturation = 101}; });
  accepted([](auto& o) { o.erasing = {.probability = 1, .area = {1, 1}, .ratio = {1, 1}, .count = {1000, 1000}}; });
  refused([](auto& o) { o.erasing.probability = 1.1; });
  refused([](auto& o) { o.erasing.ratio = {0, 1}; });
  refused([](auto& o) { o.erasing.count = {2, 1}; });
  refused([](auto& o) { o.erasing.count = {1, 1001}; });
  accepted([](auto& o) { o.fill = {0, 255, 3}; });
  refused([](auto& o) { o.fill = {-1}; });
  refused([](auto& o) { o.views = -1; });
  refused([](auto& o) { o.policy_share = 1.1; });
  image::EvalTransform two_means = transform(8);
  two_means.mean = two_means.std = {0.5, 0.5};
  EXPECT_THROW(Augmentation({}, two_means), Error);
  image::EvalTransform processor = transform(8);
  processor.processor.emplace();
  EXPECT_NO_THROW(Augmentation({}, processor));
  EXPECT_THROW(Augmentation({.padded_crop = PaddedCrop{}}, processor), Error);
}

}  // namespace
}  // namespace vitrail::data
