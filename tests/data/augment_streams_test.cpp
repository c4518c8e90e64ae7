// SPDX-License-Identifier: Apache-2.0
// Each transform against its definition with the numbers of its own random stream.
#include <array>
#include <cmath>
#include <set>

#include "tests/data/augment_testing.h"
#include "tests/data/support.h"
#include "vitrail/base/random.h"
#include "vitrail/data/augment/augment.h"
#include "vitrail/data/augment/auto_augment_internal.h"
#include "vitrail/data/augment/mixup.h"
#include "vitrail/data/augment/random_draws_internal.h"
#include "vitrail/data/augment/random_erasing_internal.h"
#include "vitrail/data/augment/random_resized_crop_internal.h"
#include "vitrail/image/affine_internal.h"
#include "vitrail/image/color_internal.h"
#include "vitrail/image/crop_internal.h"
#include "vitrail/image/enhance_internal.h"
#include "vitrail/image/gaussian_blur_internal.h"
#include "vitrail/image/point_operations_internal.h"

namespace vitrail::data {
namespace {

using image::Image;

constexpr int64_t kStreamWidth = 18, kStreamHeight = 7;
constexpr uint64_t kCrop = 0, kFlip = 1, kAffine = 2, kPolicy = 3, kJitter = 4, kErasing = 5, kStreams = 6;

image::EvalTransform wide_transform() {
  image::EvalTransform result;
  result.size = {kStreamHeight, kStreamWidth};
  result.crop_pct = 1;
  return result;
}

RandomStream stream_of(uint64_t transform, const AugmentKey& key) {
  const uint64_t epoch = random_key("augment", key.seed, static_cast<uint64_t>(key.epoch));
  return RandomStream(random_key("sample", epoch, static_cast<uint64_t>(key.sample)),
                      static_cast<uint64_t>(key.repeat) * kStreams + transform);
}

// Calls check(key) for keys that differ in each of their parts.
template <class Check>
void for_each_key(const Check& check) {
  for (int64_t i = 0; i < 60; ++i)
    check(AugmentKey{.seed = 3 + static_cast<uint64_t>(i % 2), .epoch = i % 5, .sample = 100 + i, .repeat = i % 3});
}

TEST(AugmentStreams, ThePaddedCropDrawsItsLeftAndThenItsTop) {
  const Image source = noise_image(kStreamWidth, kStreamHeight);
  AugmentOptions options;
  options.padded_crop = PaddedCrop{.padding = 3};
  const Augmentation augmentation(options, wide_transform());
  for_each_key([&](const AugmentKey& key) {
    RandomStream random = stream_of(kCrop, key);
    const int64_t left = random_integer(random, -3, 3), top = random_integer(random, -3, 3);
    EXPECT_EQ(augmentation.augmented_image(source, key).pixels,
              image::crop(source, {left, top, kStreamWidth, kStreamHeight}).pixels);
  });
}

TEST(AugmentStreams, TheFlipIsACoin) {
  const Image source = noise_image(kStreamWidth, kStreamHeight);
  Image mirrored = source;
  image::mirror(mirrored);
  AugmentOptions random, alternate;
  random.flip = Flip::random, alternate.flip = Flip::alternate;
  const Augmentation at_random(random, wide_transform()), alternating(alternate, wide_transform());
  for_each_key([&](const AugmentKey& key) {
    RandomStream draw = stream_of(kFlip, key);
    EXPECT_EQ(at_random.augmented_image(source, key).pixels, random_coin(draw) ? mirrored.pixels : source.pixels);
    RandomStream first(random_key("flip", key.seed, static_cast<uint64_t>(key.sample)));
    const bool flips = random_coin(first) != ((key.epoch + key.repeat) % 2 == 1);
    EXPECT_EQ(alternating.augmented_image(source, key).pixels, flips ? mirrored.pixels : source.pixels);
  });
}

TEST(AugmentStreams, TheAffineMapIsMadeOfFourDraws) {
  const Image source = noise_image(kStreamWidth, kStreamHeight);
  AugmentOptions options;
  options.affine = RandomAffine{.degrees = 25, .shift = {0.3, 0.2}, .scale = {0.7, 1.6}};
  options.fill = {9, 8, 7};
  const Augmentation augmentation(options, wide_transform());
  for_each_key([&](const AugmentKey& key) {
    RandomStream random = stream_of(kAffine, key);
    image::AffineParts parts;
    parts.degrees = -25 + 50 * random.uniform();
    const double max_x = 0.3 * kStreamWidth, max_y = 0.2 * kStreamHeight;
    parts.shift_x = std::nearbyint(-max_x + 2 * max_x * random.uniform());
    parts.shift_y = std::nearbyint(-max_y + 2 * max_y * random.uniform());
    parts.scale = 0.7 + (1.6 - 0.7) * random.uniform();
    const image::AffineMatrix matrix = image::affine_matrix(parts, kStreamWidth, kStreamHeight);
    EXPECT_EQ(augmentation.augmented_image(source, key).pixels,
              image::affine(source, matrix, image::Filter::bilinear, {9, 8, 7}).pixels);
  });
}

TEST(AugmentStreams, ThePolicyIsDrawnAfterItsShare) {
  const Image source = noise_image(kStreamWidth, kStreamHeight);
  for (const double share : {1.0, 0.5}) {
    AugmentOptions options;
    options.policy = "rand-m7-n2-p0.8";
    options.policy_share = share;
    options.fill = {5};
    const Augmentation augmentation(options, wide_transform());
    const auto policy = policy_from_name(options.policy);
    for_each_key([&](const AugmentKey& key) {
      RandomStream random = stream_of(kPolicy, key);
      Image want = source;
      if (share == 1 || random.uniform() < share) {
        for (const OpCall& call : policy->draw(random, kStreamWidth, kStreamHeight)) apply(call, want, {5, 5, 5});
      }
      EXPECT_EQ(augmentation.augmented_image(source, key).pixels, want.pixels);
    });
  }
}

// The order is drawn by Fisher and Yates, then the four factors, then the operations follow in that order.
TEST(AugmentStreams, ColoursAreJitteredInEveryOrder) {
  const Image source = noise_image(kStreamWidth, kStreamHeight);
  for (const double probability : {1.0, 0.5}) {
    AugmentOptions options;
    options.color_jitter =
        ColorJitter{.brightness = 0.3, .contrast = 0.5, .saturation = 0.7, .hue = 0.2, .probability = probability};
    const Augmentation augmentation(options, wide_transform());
    std::set<std::array<int, 4>> orders;
    for (int64_t sample = 0; sample < 300; ++sample) {
      const AugmentKey key{.seed = 3, .epoch = 2, .sample = sample, .repeat = 1};
      RandomStream random = stream_of(kJitter, key);
      Image want = source;
      if (probability == 1 || random.uniform() < probability) {
        std::array<int, 4> order{0, 1, 2, 3};
        for (size_t i = 3; i > 0; --i)
          std::swap(order[i], order[static_cast<size_t>(random_index(random, static_cast<int64_t>(i) + 1))]);
        orders.insert(order);
        const double brightness = 0.7 + 0.6 * random.uniform(), contrast = 0.5 + random.uniform(),
                     saturation = (1 - 0.7) + 1.4 * random.uniform(), hue = -0.2 + 0.4 * random.uniform();
        for (const int operation : order) {
          if (operation == 0) adjust_brightness(want, brightness);
          if (operation == 1) adjust_contrast(want, contrast);
          if (operation == 2) adjust_color(want, saturation);
          if (operation == 3) adjust_hue(want, hue);
        }
      }
      const Image got = augmentation.augmented_image(source, key);
      for (size_t i = 0; i < want.pixels.size(); ++i) EXPECT_NEAR(got.pixels[i], want.pixels[i], 1) << sample;
    }
    EXPECT_EQ(orders.size(), 24u);
  }
}

// Grey, blur and solarisation follow in this order, each with a key of its own.
TEST(AugmentStreams, GreyBlurAndSolarisationFollowTheJitter) {
  const Image source = noise_image(kStreamWidth, kStreamHeight);
  AugmentOptions options;
  options.color_jitter = ColorJitter{.brightness = 0.5};
  AugmentOptions jittered = options;
  options.grayscale = 0.4;
  options.blur = RandomBlur{.probability = 0.6, .radius = {0.3, 1.7}};
  options.solarize = RandomSolarize{.probability = 0.5, .threshold = 90};
  const Augmentation augmentation(options, wide_transform()), without(jittered, wide_transform());
  int count = 0, grey = 0, blurred = 0, solarized = 0;
  for_each_key([&](const AugmentKey& key) {
    const uint64_t epoch = random_key("augment", key.seed, static_cast<uint64_t>(key.epoch));
    const uint64_t sample = random_key("sample", epoch, static_cast<uint64_t>(key.sample));
    const auto stream = [&](const char* name) {
      return RandomStream(random_key(name, sample), static_cast<uint64_t>(key.repeat));
    };
    RandomStream of_grey = stream("grayscale"), of_blur = stream("blur"), of_solarize = stream("solarize");
    Image want = without.augmented_image(source, key);
    if (of_grey.uniform() < 0.4) {
      ++grey;
      want = to_mode(to_mode(want, image::ColorMode::grey), image::ColorMode::rgb);
    }
    if (of_blur.uniform() < 0.6) ++blurred, gaussian_blur(want, 0.3 + 1.4 * of_blur.uniform());
    if (of_solarize.uniform() < 0.5) ++solarized, image::solarize(want, 90);
    EXPECT_EQ(augmentation.augmented_image(source, key).pixels, want.pixels);
    ++count;
  });
  for (const int applied : {grey, blurred, solarized}) EXPECT_TRUE(applied > 5 && applied < count - 5) << applied;
}

TEST(AugmentStreams, ErasingFollowsTheNormalisation) {
  const Image source = noise_image(kStreamWidth, kStreamHeight);
  for (const auto mode : {RandomErasing::Mode::constant, RandomErasing::Mode::colour, RandomErasing::Mode::pixel}) {
    AugmentOptions options;
    options.erasing.probability = 0.6;
    options.erasing.mode = mode;
    options.erasing.count = {1, 3};
    const Augmentation augmentation(options, wide_transform()), plain({}, wide_transform());
    for_each_key([&](const AugmentKey& key) {
      std::vector<float> got(3 * kStreamWidth * kStreamHeight), want(got.size());
      augmentation.apply_into(source, key, got.data());
      plain.apply_into(source, key, want.data());
      RandomStream random = stream_of(kErasing, key);
      erase(options.erasing, 3, kStreamHeight, kStreamWidth, random, want.data());
      EXPECT_EQ(got, want);
    });
  }
}

// timm's RandomErasing, written again: how many rectangles, then for each one its area, its ratio and its corner.
TEST(RandomErasing, HasTheRectanglesOfItsDraws) {
  RandomErasing options{.probability = 0.7, .area = {0.05, 0.6}, .ratio = {0.4, 3}, .count = {1, 4}};
  for (const auto mode : {RandomErasing::Mode::constant, RandomErasing::Mode::colour, RandomErasing::Mode::pixel}) {
    options.mode = mode;
    for (uint64_t seed = 0; seed < 100; ++seed) {
      RandomStream random(random_key("rectangles", seed)), same = random;
      std::vector<float> got(2 * kStreamHeight * kStreamWidth, 5.0F), want = got;
      erase(options, 2, kStreamHeight, kStreamWidth, random, got.data());
      const bool erases = same.uniform() < 0.7;
      const int64_t count = erases ? 1 + std::min<int64_t>(static_cast<int64_t>(same.uniform() * 4), 3) : 0;
      for (int64_t i = 0; i < count; ++i) {
        int64_t height = 0, width = 0, top = 0, left = 0;
        for (int attempt = 0; attempt < 10; ++attempt) {
          const double area =
              (0.05 + (0.6 - 0.05) * same.uniform()) * kStreamWidth * kStreamHeight / static_cast<double>(count);
          const double ratio = std::exp(std::log(0.4) + (std::log(3) - std::log(0.4)) * same.uniform());
          const auto h = static_cast<int64_t>(std::nearbyint(std::sqrt(area * ratio))),
                     w = static_cast<int64_t>(std::nearbyint(std::sqrt(area / ratio)));
          if (h >= kStreamHeight || w >= kStreamWidth) continue;
          height = h, width = w;
          top = static_cast<int64_t>(same.uniform() * static_cast<double>(kStreamHeight - h + 1));
          left = static_cast<int64_t>(same.uniform() * static_cast<double>(kStreamWidth - w + 1));
          break;
        }
        for (int64_t c = 0; c < 2; ++c) {
          const float colour = mode == RandomErasing::Mode::colour ? static_cast<float>(same.normal()) : 0;
          for (int64_t y = top; y < top + height; ++y) {
            for (int64_t x = left; x < left + width; ++x) {
              want[static_cast<size_t>((c * kStreamHeight + y) * kStreamWidth + x)] =
                  mode == RandomErasing::Mode::pixel ? static_cast<float>(same.normal()) : colour;
            }
          }
        }
      }
      EXPECT_EQ(got, want) << seed;
    }
  }
}

// torchvision's get_params, written again: area and ratio, then the corner of a window that fits.
TEST(RandomResizedCrop, HasTheWindowOfItsDraws) {
  const RandomResizedCrop options{.scale = {0.2, 0.9}, .ratio = {0.6, 1.9}};
  for (const auto& [width, height] : {std::pair<int64_t, int64_t>{53, 31}, {20, 90}, {3, 2}}) {
    for (uint64_t seed = 0; seed < 100; ++seed) {
      RandomStream random(random_key("windows", seed)), same = random;
      const image::Window got = resized_crop_window(options, width, height, random);
      for (int attempt = 0; attempt < 10; ++attempt) {
        const double area = static_cast<double>(width * height) * (0.2 + (0.9 - 0.2) * same.uniform());
        const double ratio = std::exp(std::log(0.6) + (std::log(1.9) - std::log(0.6)) * same.uniform());
        const auto w = static_cast<int64_t>(std::nearbyint(std::sqrt(area * ratio))),
                   h = static_cast<int64_t>(std::nearbyint(std::sqrt(area / ratio)));
        if (w < 1 || w > width || h < 1 || h > height) continue;
        EXPECT_EQ(got.width, w) << seed;
        EXPECT_EQ(got.height, h) << seed;
        EXPECT_EQ(got.top, static_cast<int64_t>(same.uniform() * static_cast<double>(height - h + 1))) << seed;
        EXPECT_EQ(got.left, static_cast<int64_t>(same.uniform() * static_cast<double>(width - w + 1))) << seed;
        break;
      }
      EXPECT_EQ(random.bits(), same.bits()) << "as many draws";
    }
  }
}

// Whether a batch is mixed is its first draw, and which kind its second if there are both.
TEST(Mixup, DrawsWhetherAndThenHow) {
  MixupOptions options{.mixup_alpha = 0.5, .cutmix_alpha = 0.8, .probability = 0.6, .switch_probability = 0.3};
  options.classes = 3;
  for (const auto mode : {MixupOptions::Mode::batch, MixupOptions::Mode::element}) {
    options.mode = mode;
    for (int64_t step = 0; step < 50; ++step) {
      for (const int64_t position : {0, 1, 9}) {
        const uint64_t key = random_key("mix", random_key("epoch", 7, 2), static_cast<uint64_t>(step));
        const bool by_element = mode == MixupOptions::Mode::element;
        RandomStream random(key, by_element ? static_cast<uint64_t>(position) + 1 : 0);
        const bool mixes = random.uniform() < 0.6, cuts = random.uniform() < 0.3;
        const MixupParams got = draw_mixup(options, 7, 2, step, position, 64, 32);
        EXPECT_EQ(got.cut, mixes && cuts) << step << " " << position;
        if (!mixes) {
          EXPECT_EQ(got.lambda, 1);
        } else if (!cuts) {
          EXPECT_NE(got.lambda, 1);
        }
      }
    }
  }
}

}  // namespace
}  // namespace vitrail::data
