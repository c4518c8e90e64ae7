// SPDX-License-Identifier: Apache-2.0
// Augmentation of images that are wider than high: no step may take one side for the other.
#include <cmath>
#include <map>
#include <set>

#include "tests/data/augment_testing.h"
#include "tests/data/support.h"
#include "vitrail/base/random.h"
#include "vitrail/data/augment/augment.h"
#include "vitrail/data/augment/auto_augment_internal.h"
#include "vitrail/data/augment/random_draws_internal.h"
#include "vitrail/data/augment/random_erasing_internal.h"
#include "vitrail/data/augment/random_resized_crop_internal.h"
#include "vitrail/image/affine_internal.h"
#include "vitrail/image/crop_internal.h"
#include "vitrail/image/resize_internal.h"

namespace vitrail::data {
namespace {

using image::Filter;
using image::Image;

constexpr int64_t kWidth = 20, kHeight = 6;

image::EvalTransform wide() {
  image::EvalTransform result;
  result.size = {kHeight, kWidth};
  result.crop_pct = 1;
  return result;
}

using Bytes = std::vector<uint8_t>;

// The distinct results of 300 samples.
std::set<Bytes> results(const AugmentOptions& options, const Image& source) {
  const Augmentation augmentation(options, wide());
  std::set<Bytes> seen;
  for (int64_t sample = 0; sample < 300; ++sample) {
    const Image result = augmentation.augmented_image(source, {.sample = sample});
    EXPECT_EQ(result.width, kWidth);
    EXPECT_EQ(result.height, kHeight);
    seen.insert(result.pixels);
  }
  return seen;
}

TEST(WideImages, HaveTheSizeOfTheInputAfterEachCrop) {
  for (const auto& [width, height] : {std::pair<int64_t, int64_t>{20, 6}, {6, 20}, {31, 17}}) {
    const Image source = noise_image(width, height);
    AugmentOptions resized, padded;
    resized.random_resized_crop.emplace();
    padded.padded_crop = PaddedCrop{.padding = 1};
    EXPECT_GT(results(resized, source).size(), 100u);
    EXPECT_EQ(results(padded, source).size(), 9u);
    EXPECT_EQ(results({}, source).size(), 1u);
  }
}

// Nothing is drawn twice: a shift of x takes the width, and one of y the height.
TEST(WideImages, AffineShiftsAreFractionsOfTheirSide) {
  const Image source = noise_image(kWidth, kHeight);
  const image::Fill fill{7, 8, 9};
  for (const bool along_x : {true, false}) {
    AugmentOptions options;
    options.fill = {7, 8, 9};
    options.affine = RandomAffine{.interpolation = Filter::nearest};
    options.affine->shift = along_x ? std::array{0.1, 0.0} : std::array{0.0, 0.34};
    std::set<Bytes> expected;
    for (int64_t shift = -2; shift <= 2; ++shift) {  // 0.1 · 20, or 0.34 · 6 rounded
      const image::Window window =
          along_x ? image::Window{shift, 0, kWidth, kHeight} : image::Window{0, shift, kWidth, kHeight};
      expected.insert(image::crop(source, window, image::Padding::constant, fill).pixels);
    }
    EXPECT_EQ(results(options, source), expected) << along_x;
  }
}

TEST(RandomAffine, TurnsAndScalesInItsRanges) {
  const Image source = noise_image(kWidth, kHeight);
  AugmentOptions options;
  options.affine = RandomAffine{.scale = {2, 2}, .interpolation = Filter::bicubic};
  const image::AffineMatrix twice = image::affine_matrix({.scale = 2}, kWidth, kHeight);
  EXPECT_EQ(results(options, source), std::set<Bytes>{image::affine(source, twice, Filter::bicubic, {}).pixels});
  options.affine = RandomAffine{.degrees = 90};
  EXPECT_GT(results(options, source).size(), 250u);
  options.affine = RandomAffine{.scale = {0.5, 2}};
  EXPECT_GT(results(options, source).size(), 250u);
  options.affine = RandomAffine{};
  EXPECT_EQ(results(options, source), std::set<Bytes>{source.pixels});
}

TEST(PaddedCrop, MirrorsTheImageOrFillsAroundIt) {
  const Image source = noise_image(kWidth, kHeight);
  for (const auto mode : {PaddedCrop::Mode::constant, PaddedCrop::Mode::reflect}) {
    AugmentOptions options;
    options.padded_crop = PaddedCrop{.padding = 2, .mode = mode};
    options.fill = {1, 2, 3};
    std::set<Bytes> expected;
    for (int64_t left = -2; left <= 2; ++left) {
      for (int64_t top = -2; top <= 2; ++top) {
        const auto padding = mode == PaddedCrop::Mode::reflect ? image::Padding::reflect : image::Padding::constant;
        expected.insert(image::crop(source, {left, top, kWidth, kHeight}, padding, {1, 2, 3}).pixels);
      }
    }
    EXPECT_EQ(results(options, source), expected);
  }
}

// An image of another size is resized by the filter of the evaluation.
TEST(PaddedCrop, ResizesOtherSizesByTheFilterOfTheTransform) {
  const Image source = noise_image(33, 11), high = noise_image(kWidth, 11), long_row = noise_image(33, kHeight);
  AugmentOptions options;
  options.padded_crop = PaddedCrop{.padding = 0};
  for (const Filter filter : {Filter::nearest, Filter::bilinear, Filter::lanczos}) {
    image::EvalTransform transform = wide();
    transform.interpolation = filter;
    for (const Image& image : {source, high, long_row}) {
      EXPECT_EQ(Augmentation(options, transform).augmented_image(image, {}).pixels,
                resize(image, kWidth, kHeight, filter).pixels);
    }
  }
}

TEST(RandomResizedCrop, DrawsOneOfItsFilters) {
  const Image source = noise_image(40, 12);
  AugmentOptions options;
  options.random_resized_crop = RandomResizedCrop{.scale = {1, 1}, .ratio = {40.0 / 12, 40.0 / 12}};
  const auto with = [&](const std::vector<Filter>& filters) {
    options.random_resized_crop->interpolation = filters;
    return results(options, source);
  };
  const auto by = [&](Filter filter) { return resize(source, kWidth, kHeight, filter).pixels; };
  EXPECT_EQ(with({Filter::nearest}), std::set<Bytes>{by(Filter::nearest)});
  EXPECT_EQ(with({Filter::box, Filter::lanczos}), (std::set<Bytes>{by(Filter::box), by(Filter::lanczos)}));
}

// Ten attempts of two draws each.  None fits, so that the centre follows without a draw.
TEST(RandomResizedCrop, TriesTenWindows) {
  RandomStream random(random_key("attempts")), same = random;
  const image::Window window = resized_crop_window({.scale = {1, 1}, .ratio = {1, 1}}, 30, 10, random);
  EXPECT_EQ(window.width, 10);
  EXPECT_EQ(window.height, 10);
  EXPECT_EQ(window.left, 10);
  for (int draw = 0; draw < 20; ++draw) same.uniform();
  EXPECT_EQ(random.uniform(), same.uniform());
}

TEST(RandomErasing, TriesTenRectanglesAndErasesNothingIfNoneFits) {
  RandomErasing options{.probability = 1, .mode = RandomErasing::Mode::constant, .area = {1, 1}, .ratio = {1, 1}};
  RandomStream random(random_key("attempts")), same = random;
  std::vector<float> plane(25, 3.0F);
  erase(options, 1, 5, 5, random, plane.data());
  EXPECT_EQ(plane, std::vector<float>(25, 3.0F));
  for (int draw = 0; draw < 2 + 20; ++draw) same.uniform();  // whether, how many, and ten attempts
  EXPECT_EQ(random.uniform(), same.uniform());
  options.probability = 0;
  const RandomStream before = random;
  RandomStream untouched = before;
  erase(options, 1, 5, 5, random, plane.data());
  EXPECT_EQ(random.uniform(), untouched.uniform()) << "without a draw";
}

// A rectangle of an image that is wider than high, in the same place of each channel, and nothing beside it.
TEST(RandomErasing, ErasesARectangleOfAllChannels) {
  AugmentOptions options;
  options.erasing = {.probability = 1, .mode = RandomErasing::Mode::constant, .area = {0.1, 0.1}, .ratio = {1, 1}};
  image::EvalTransform transform = wide();
  transform.mean = {10}, transform.std = {1};  // no pixel becomes 0
  const Augmentation augmentation(options, transform);
  const Image source = noise_image(kWidth, kHeight);
  int64_t furthest = 0;
  for (int64_t sample = 0; sample < 100; ++sample) {
    std::vector<float> out(3 * kWidth * kHeight);
    augmentation.apply_into(source, {.sample = sample}, out.data());
    int64_t left = kWidth, right = -1, top = kHeight, bottom = -1, zeros = 0;
    for (int64_t i = 0; i < kWidth * kHeight; ++i) {
      const bool erased = out[static_cast<size_t>(i)] == 0;
      for (int64_t c = 1; c < 3; ++c)
        ASSERT_EQ(out[static_cast<size_t>(c * kWidth * kHeight + i)] == 0, erased) << sample << " " << i;
      if (!erased) continue;
      ++zeros;
      left = std::min(left, i % kWidth), right = std::max(right, i % kWidth);
      top = std::min(top, i / kWidth), bottom = std::max(bottom, i / kWidth);
    }
    EXPECT_EQ(right - left + 1, 3) << "√12 rounded";
    EXPECT_EQ(bottom - top + 1, 3);
    EXPECT_EQ(zeros, 9);
    furthest = std::max(furthest, right);
  }
  EXPECT_EQ(furthest, kWidth - 1);
}

TEST(Policies, TakeWidthAndHeightForTheirOwnShifts) {
  for (const char* name : {"rand-m10-n2-p1", "randaugment-n2-m30", "autoaugment-cifar10"}) {
    double max_x = 0, max_y = 0;
    for (uint64_t i = 0; i < 3000; ++i) {
      RandomStream random(random_key("sides", i));
      for (const OpCall& call : policy_from_name(name)->draw(random, 331, 33)) {
        if (call.op == ImageOp::translate_x) max_x = std::max(max_x, std::abs(call.argument));
        if (call.op == ImageOp::translate_y) max_y = std::max(max_y, std::abs(call.argument));
      }
    }
    const bool is_timm = std::string(name).starts_with("rand-");
    EXPECT_NEAR(max_x, is_timm ? 0.45 * 331 : 150, 1e-9) << name;
    EXPECT_NEAR(max_y, is_timm ? 0.45 * 33 : 14, 1e-9) << name;  // 14.95 truncated
  }
}

TEST(Policies, DrawTheFiltersThatTheyAreGiven) {
  const auto filters_of = [](const std::string& name, const std::vector<Filter>& filters) {
    std::set<Filter> seen;
    const auto policy = policy_from_name(name, filters);
    for (uint64_t i = 0; i < 200; ++i) {
      RandomStream random(random_key("filters", i));
      for (const OpCall& call : policy->draw(random, 32, 32)) seen.insert(call.filter);
    }
    return seen;
  };
  for (const char* name : {"rand-m9", "randaugment", "trivialaugment", "autoaugment-cifar10", "autoaugment-imagenet"}) {
    const bool is_timm = std::string(name).starts_with("rand-");
    EXPECT_EQ(filters_of(name, {}),
              is_timm ? (std::set<Filter>{Filter::bilinear, Filter::bicubic}) : std::set<Filter>{Filter::nearest})
        << name;
    EXPECT_EQ(filters_of(name, {Filter::bicubic}), std::set<Filter>{Filter::bicubic}) << name;
    EXPECT_EQ(filters_of(name, {Filter::nearest, Filter::bilinear}),
              (std::set<Filter>{Filter::nearest, Filter::bilinear}))
        << name;
    EXPECT_EQ(policy_from_name(name)->fills_with_mean(), is_timm) << name;
  }
}

TEST(Flip, AlternationBeginsByTheSeed) {
  AugmentOptions options;
  options.flip = Flip::alternate;
  const Augmentation augmentation(options, wide());
  const Image source = noise_image(kWidth, kHeight);
  int different = 0;
  for (int64_t sample = 0; sample < 64; ++sample) {
    different += augmentation.augmented_image(source, {.seed = 1, .sample = sample}).pixels !=
                 augmentation.augmented_image(source, {.seed = 2, .sample = sample}).pixels;
  }
  EXPECT_GT(different, 10);
  EXPECT_LT(different, 54);
}

// The mean in a byte as Python rounds it: halves to the even value, between 0 and 255.
TEST(Fill, TheMeanIsRoundedAsInPython) {
  AugmentOptions options;
  options.policy = "rand-m10-n2-p1";
  image::EvalTransform transform = wide();
  transform.mean = {24.5 / 255, 1.2, -0.3};
  const Augmentation augmentation(options, transform);
  Image grey = image::make_image(kWidth, kHeight, 3);
  std::fill(grey.pixels.begin(), grey.pixels.end(), uint8_t{128});
  std::set<Bytes> colours;
  for (int64_t sample = 0; sample < 300; ++sample) {
    const Image result = augmentation.augmented_image(grey, {.sample = sample});
    for (size_t i = 0; i < result.pixels.size(); i += 3)
      colours.insert({result.pixels[i], result.pixels[i + 1], result.pixels[i + 2]});
  }
  EXPECT_TRUE(colours.contains({24, 255, 0}));
}

TEST(AugmentOptions, HaveTheDefaultsOfTheirReferences) {
  const AugmentOptions options;
  EXPECT_FALSE(options.random_resized_crop || options.padded_crop || options.affine || options.color_jitter);
  EXPECT_EQ(options.flip, Flip::none);
  EXPECT_TRUE(options.policy.empty() && options.policy_interpolation.empty() && options.fill.empty());
  EXPECT_EQ(options.policy_share, 1);
  EXPECT_EQ(options.off_epoch, -1);
  EXPECT_EQ(options.views, 0);
  EXPECT_EQ(options.view_epochs, -1);
  const RandomResizedCrop crop;
  EXPECT_EQ(crop.scale, (std::array{0.08, 1.0}));
  EXPECT_EQ(crop.ratio, (std::array{3.0 / 4.0, 4.0 / 3.0}));
  EXPECT_EQ(crop.interpolation, std::vector<Filter>{Filter::bicubic});
  EXPECT_EQ(PaddedCrop().padding, 4);
  EXPECT_EQ(PaddedCrop().mode, PaddedCrop::Mode::constant);
  const RandomAffine affine;
  EXPECT_EQ(affine.degrees, 0);
  EXPECT_EQ(affine.shift, (std::array{0.0, 0.0}));
  EXPECT_EQ(affine.scale, (std::array{1.0, 1.0}));
  EXPECT_EQ(affine.interpolation, Filter::bilinear);
  EXPECT_EQ(ColorJitter().probability, 1);
  EXPECT_EQ(ColorJitter().hue, 0);
  const RandomErasing erasing;
  EXPECT_EQ(erasing.probability, 0);
  EXPECT_EQ(erasing.mode, RandomErasing::Mode::pixel);
  EXPECT_EQ(erasing.area, (std::array{0.02, 1.0 / 3.0}));
  EXPECT_EQ(erasing.ratio, (std::array{0.3, 1.0 / 0.3}));
  EXPECT_EQ(erasing.count, (std::array<int64_t, 2>{1, 1}));
  const AugmentKey key;
  EXPECT_TRUE(key.seed == 0 && key.epoch == 0 && key.sample == 0 && key.repeat == 0);
}

// An epoch is strong or not, shows a view, and has the draws of an epoch.
TEST(AugmentOptions, EpochsHaveTheirViewsAndDraws) {
  struct Case {
    int64_t off_epoch, views, view_epochs;
    std::vector<bool> strong;
    std::vector<int64_t> view, draw;
  };
  for (const Case& each : {Case{-1, 0, -1, {1, 1, 1, 1}, {-1, -1, -1, -1}, {0, 1, 2, 3}},
                           {0, 0, -1, {0, 0, 0, 0}, {-1, -1, -1, -1}, {0, 1, 2, 3}},
                           {2, 0, 3, {1, 1, 0, 0}, {-1, -1, -1, -1}, {0, 1, 2, 3}},
                           {-1, 3, -1, {1, 1, 1, 1, 1}, {0, 1, 2, 0, 1}, {0, 1, 2, 0, 1}},
                           {2, 3, -1, {1, 1, 0, 0, 0}, {0, 1, 5, 3, 4}, {0, 1, 2, 0, 1}},
                           {-1, 2, 3, {0, 0, 0, 1, 1}, {0, 1, 0, -1, -1}, {0, 1, 0, 2, 3}},
                           {4, 2, 3, {0, 0, 0, 1, 0}, {0, 1, 0, -1, -1}, {0, 1, 0, 2, 3}},
                           {-1, 2, 0, {1, 1, 1}, {-1, -1, -1}, {2, 3, 4}}}) {
    AugmentOptions options;
    options.off_epoch = each.off_epoch, options.views = each.views, options.view_epochs = each.view_epochs;
    for (size_t epoch = 0; epoch < each.strong.size(); ++epoch) {
      const std::string name = str(each.off_epoch, " ", each.views, " ", each.view_epochs, ": ", epoch);
      EXPECT_EQ(options.strong(static_cast<int64_t>(epoch)), each.strong[epoch]) << name;
      EXPECT_EQ(options.view_of(static_cast<int64_t>(epoch)), each.view[epoch]) << name;
      EXPECT_EQ(options.draw_epoch(static_cast<int64_t>(epoch)), each.draw[epoch]) << name;
    }
  }
}

TEST(RandomDraws, AChoiceOfOneConsumesNone) {
  RandomStream random(random_key("choice")), same = random;
  EXPECT_EQ(random_choice(random, std::vector<int>{7}), 7);
  EXPECT_EQ(random.bits(), same.bits());
  std::map<int, int> counts;
  for (int i = 0; i < 3000; ++i) ++counts[random_choice(random, std::vector<int>{4, 5, 6})];
  EXPECT_EQ(counts.size(), 3u);
  for (const auto& [value, count] : counts) EXPECT_NEAR(count, 1000, 130) << value;
  int heads = 0;
  for (int i = 0; i < 10000; ++i) heads += random_coin(random);
  EXPECT_NEAR(heads, 5000, 250);
}

}  // namespace
}  // namespace vitrail::data
