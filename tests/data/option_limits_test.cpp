// SPDX-License-Identifier: Apache-2.0
// The limits of all options of augmentation, mixing and loaders, with the messages that name them.
#include <cmath>
#include <functional>
#include <limits>

#include "tests/data/augment_testing.h"
#include "tests/data/noise_dataset.h"
#include "tests/data/support.h"
#include "tests/support/errors.h"
#include "vitrail/data/augment/augment_checks_internal.h"
#include "vitrail/data/augment/auto_augment_internal.h"
#include "vitrail/data/augment/mixup.h"
#include "vitrail/data/loader/loader_checks_internal.h"

namespace vitrail::data {
namespace {

using image::Filter;

TEST(AugmentChecks, NameTheOptionItsRangeAndTheValue) {
  using Change = std::function<void(AugmentOptions&)>;
  const auto crop = [](const RandomResizedCrop& value) {
    return [=](AugmentOptions& o) { o.random_resized_crop = value; };
  };
  const auto padding = [](int64_t value) { return [=](AugmentOptions& o) { o.padded_crop = PaddedCrop{value}; }; };
  const auto affine = [](const RandomAffine& value) { return [=](AugmentOptions& o) { o.affine = value; }; };
  const auto jitter = [](const ColorJitter& value) { return [=](AugmentOptions& o) { o.color_jitter = value; }; };
  const auto blur = [](const RandomBlur& value) { return [=](AugmentOptions& o) { o.blur = value; }; };
  const auto solarize = [](const RandomSolarize& value) { return [=](AugmentOptions& o) { o.solarize = value; }; };
  const auto erasing = [](const RandomErasing& value) { return [=](AugmentOptions& o) { o.erasing = value; }; };
  const std::pair<Change, const char*> refused[] = {
      {crop({.scale = {0, 1}}), "random_resized_crop.scale: …, got [0, 1]"},
      {crop({.scale = {0.5, 1.5}}), "random_resized_crop.scale: …, got [0.5, 1.5]"},
      {crop({.scale = {0.6, 0.5}}), "random_resized_crop.scale: …, got [0.6, 0.5]"},
      {crop({.ratio = {0, 1}}), "random_resized_crop.ratio: …, got [0, 1]"},
      {crop({.ratio = {2, 1}}), "random_resized_crop.ratio: …, got [2, 1]"},
      {crop({.ratio = {1, 1e7}}), "random_resized_crop.ratio: …, got [1, 1e+07]"},
      {crop({.interpolation = {}}), "random_resized_crop.interpolation: …, got none"},
      {padding(-1), "padded_crop.padding: …, got -1"},
      {padding(10001), "padded_crop.padding: …, got 10001"},
      {affine({.degrees = -0.5}), "affine.degrees: …, got -0.5"},
      {affine({.degrees = 180.5}), "affine.degrees: …, got 180.5"},
      {affine({.shift = {-0.1, 0}}), "affine.shift: …, got [-0.1, 0]"},
      {affine({.shift = {0, 1.1}}), "affine.shift: …, got [0, 1.1]"},
      {affine({.scale = {0, 1}}), "affine.scale: …, got [0, 1]"},
      {affine({.scale = {2, 1}}), "affine.scale: …, got [2, 1]"},
      {affine({.scale = {1, 1000001}}), "affine.scale: …, got [1, 1e+06]"},
      {affine({.interpolation = Filter::box}), "affine.interpolation: …, got box"},
      {[](auto& o) { o.policy_share = -0.25; }, "policy_share: …, got -0.25"},
      {[](auto& o) { o.policy_share = 1.25; }, "policy_share: …, got 1.25"},
      {jitter({.brightness = -1}), "color_jitter.brightness: …, got -1"},
      {jitter({.contrast = 101}), "color_jitter.contrast: …, got 101"},
      {jitter({.saturation = -0.5}), "color_jitter.saturation: …, got -0.5"},
      {jitter({.hue = -0.1}), "color_jitter.hue: …, got -0.1"},
      {jitter({.hue = 0.51}), "color_jitter.hue: …, got 0.51"},
      {jitter({.probability = 1.5}), "color_jitter.probability: …, got 1.5"},
      {[](auto& o) { o.grayscale = -0.1; }, "grayscale: …, got -0.1"},
      {[](auto& o) { o.grayscale = 1.1; }, "grayscale: …, got 1.1"},
      {blur({.probability = 1.5}), "blur.probability: …, got 1.5"},
      {blur({.radius = {-0.5, 1}}), "blur.radius: …, got [-0.5, 1]"},
      {blur({.radius = {2, 1}}), "blur.radius: …, got [2, 1]"},
      {blur({.radius = {2, 101}}), "blur.radius: …, got [2, 101]"},
      {solarize({.probability = -1}), "solarize.probability: …, got -1"},
      {solarize({.threshold = -1}), "solarize.threshold: …, got -1"},
      {solarize({.threshold = 257}), "solarize.threshold: …, got 257"},
      {erasing({.probability = -1}), "erasing.probability: …, got -1"},
      {erasing({.area = {0, 1}}), "erasing.area: …, got [0, 1]"},
      {erasing({.area = {0.1, 1.1}}), "erasing.area: …, got [0.1, 1.1]"},
      {erasing({.ratio = {3, 2}}), "erasing.ratio: …, got [3, 2]"},
      {erasing({.ratio = {1, 1e7}}), "erasing.ratio: …, got [1, 1e+07]"},
      {erasing({.count = {0, 1}}), "erasing.count: …, got [0, 1]"},
      {erasing({.count = {3, 2}}), "erasing.count: …, got [3, 2]"},
      {erasing({.count = {1, 1001}}), "erasing.count: …, got [1, 1001]"},
      {[](auto& o) { o.views = -1; }, "views: …, got -1"},
      {[](auto& o) {
         o.fill = {1, 2};
       },
       "fill: …, got 2"},
      {[](auto& o) {
         o.fill = {1, 2, 3, 4};
       },
       "fill: …, got 4"},
      {[](auto& o) {
         o.fill = {1, -2, 3};
       },
       "fill: …, got -2"},
      {[](auto& o) { o.fill = {256}; }, "fill: …, got 256"},
      {[](auto& o) { o.padded_crop.emplace(), o.random_resized_crop.emplace(); },
       "padded_crop: …, got random_resized_crop as well"}};
  for (const auto& [change, message] : refused) {
    AugmentOptions options;
    change(options);
    EXPECT_ERROR_TEXT(error_of([&] { check(options, transform(8)); }), std::string("augment.") + message);
  }
  const Change accepted[] = {
      crop({.scale = {1e-6, 1}, .ratio = {1e6, 1e6}}),
      crop({.scale = {0.5, 0.5}, .ratio = {1e-6, 1e-6}}),
      padding(0),
      padding(10000),
      affine({.degrees = 180, .shift = {1, 1}, .scale = {1e6, 1e6}}),
      affine({.degrees = 0, .shift = {0, 0}, .scale = {1e-6, 1e-6}, .interpolation = Filter::nearest}),
      affine({.interpolation = Filter::bicubic}),
      [](auto& o) { o.policy_share = 0; },
      jitter({.brightness = 100, .contrast = 100, .saturation = 100, .hue = 0.5, .probability = 0}),
      [](auto& o) { o.grayscale = 1; },
      blur({.probability = 0, .radius = {0, 0}}),
      blur({.probability = 1, .radius = {100, 100}}),
      solarize({.probability = 0, .threshold = 0}),
      solarize({.probability = 1, .threshold = 256}),
      erasing({.probability = 1, .area = {1, 1}, .ratio = {1e6, 1e6}, .count = {1000, 1000}}),
      [](auto& o) {
        o.views = 0, o.fill = {0, 255, 3};
      },
      [](auto& o) { o.fill = {255}; }};
  for (const Change& change : accepted) {
    AugmentOptions options;
    change(options);
    EXPECT_NO_THROW(check(options, transform(8)));
  }
}

TEST(AugmentChecks, NameWhatTheTransformLacks) {
  const auto refusal = [](const auto& change) {
    image::EvalTransform changed = transform(8);
    change(changed);
    return error_of([&] { check({}, changed); });
  };
  EXPECT_ERROR(refusal([](auto& t) { t.mean = {}; }), "augment.mean", "0");
  EXPECT_ERROR(refusal([](auto& t) { t.mean = {1, 2}; }), "augment.mean", "2");
  EXPECT_ERROR(refusal([](auto& t) { t.mean = {1, 2, 3, 4}; }), "augment.mean", "4");
  EXPECT_ERROR(refusal([](auto& t) { t.size = {0, 5}; }), "augment.size", "0");
  EXPECT_ERROR(refusal([](auto& t) { t.size = {5, 65537}; }), "augment.size", "65537");
  image::EvalTransform large = transform(8), processor = transform(8);
  large.size = {65536, 1};
  EXPECT_NO_THROW(check({}, large));
  processor.processor.emplace();
  EXPECT_NO_THROW(check({}, processor));
  for (const bool padded : {true, false}) {
    AugmentOptions options;
    if (padded) options.padded_crop.emplace();
    if (!padded) options.random_resized_crop.emplace();
    EXPECT_ERROR(error_of([&] { check(options, processor); }), "augment", "a Hugging Face processor");
  }
}

TEST(PolicyNames, RefusalsSayWhatIsWrong) {
  const auto refusal = [](const std::string& name) { return error_of([&] { policy_from_name(name); }); };
  EXPECT_ERROR(refusal("augmix"), "policy", "'augmix'");
  EXPECT_ERROR(refusal("rand-m9-x3"), "policy rand-m9-x3", "'x3'");
  EXPECT_ERROR(refusal("rand-m9-q"), "policy rand-m9-q", "'q'");
  EXPECT_ERROR(refusal("rand-m9-n2-m8"), "policy rand-m9-n2-m8", "m twice");
  EXPECT_ERROR(refusal("rand-m1.5"), "policy rand-m1.5", "1.5");
  EXPECT_ERROR(refusal("rand-n101"), "policy rand-n101", "101");
  EXPECT_ERROR(refusal("rand-n16-tweights"), "policy rand-n16-tweights", "16");
  EXPECT_ERROR(refusal("rand-mmax0"), "policy rand-mmax0", "0");
  EXPECT_ERROR(refusal("rand-inc2"), "policy rand-inc2", "2");
  EXPECT_ERROR(refusal("rand-p1.5"), "policy rand-p1.5", "1.5");
  EXPECT_ERROR(refusal("randaugment-q1"), "policy randaugment-q1", "'q1'");
  EXPECT_ERROR(refusal("randaugment-m31"), "policy randaugment-m31", "31");
  EXPECT_ERROR(refusal("randaugment-b1001"), "policy randaugment-b1001", "1001");
  EXPECT_ERROR(refusal("trivialaugment-n1"), "policy trivialaugment-n1", "'n1'");
  for (const Filter filter : {Filter::box, Filter::hamming, Filter::lanczos}) {
    EXPECT_ERROR_TEXT(error_of([&] {
                        policy_from_name("rand", {Filter::nearest, filter});
                      }),
                      std::string("policy: …, got ") + image::name_of(filter));
  }
  EXPECT_NO_THROW(policy_from_name("rand", {Filter::nearest, Filter::bilinear, Filter::bicubic}));
}

TEST(MixupChecks, NameTheOptionItsRangeAndTheValue) {
  const double nan = std::nan("");
  using Change = std::function<void(MixupOptions&)>;
  const std::pair<Change, const char*> refused[] = {
      {[](auto& o) { o.mixup_alpha = -0.5; }, "mixup_alpha: …, got -0.5"},
      {[=](auto& o) { o.mixup_alpha = nan; }, "mixup_alpha: …, got nan"},
      {[](auto& o) { o.cutmix_alpha = -1; }, "cutmix_alpha: …, got -1"},
      {[](auto& o) { o.probability = -0.5; }, "probability: …, got -0.5"},
      {[](auto& o) { o.probability = 1.5; }, "probability: …, got 1.5"},
      {[](auto& o) { o.switch_probability = 2; }, "switch_probability: …, got 2"},
      {[](auto& o) { o.label_smoothing = -0.1; }, "label_smoothing: …, got -0.1"},
      {[](auto& o) { o.label_smoothing = 1.1; }, "label_smoothing: …, got 1.1"},
      {[](auto& o) { o.mixup_alpha = 1, o.classes = 1; }, "classes: …, got 1"},
      {[](auto& o) { o.cutmix_alpha = 1, o.classes = 0; }, "classes: …, got 0"}};
  for (const auto& [change, message] : refused) {
    MixupOptions options;
    options.classes = 5;
    change(options);
    EXPECT_ERROR_TEXT(error_of([&] { check(options); }), std::string("mix.") + message);
  }
  const Change accepted[] = {[](auto& o) { o.mixup_alpha = o.cutmix_alpha = 1, o.classes = 2; },
                             [](auto& o) { o.probability = o.switch_probability = o.label_smoothing = 1; },
                             [](auto& o) { o.probability = o.switch_probability = o.label_smoothing = 0; },
                             [](auto& o) { o.classes = 0; }};
  for (const Change& change : accepted) {
    MixupOptions options;
    change(options);
    EXPECT_NO_THROW(check(options));
  }
}

TEST(MixupOptions, AreOffByDefaultAndActiveUntilTheirLastEpoch) {
  MixupOptions options;
  EXPECT_EQ(options.probability, 1);
  EXPECT_EQ(options.switch_probability, 0.5);
  EXPECT_EQ(options.mode, MixupOptions::Mode::batch);
  EXPECT_EQ(options.label_smoothing, 0);
  EXPECT_FALSE(options.any());
  EXPECT_FALSE(options.active(0));
  options.cutmix_alpha = 0.1;
  EXPECT_TRUE(options.any());
  EXPECT_TRUE(options.active(1'000'000)) << "never off by default";
  options.off_epoch = 2;
  EXPECT_TRUE(options.active(1));
  EXPECT_FALSE(options.active(2));
  options.off_epoch = 0;
  EXPECT_FALSE(options.active(0));
  options = {.mixup_alpha = 0.1};
  EXPECT_TRUE(options.any());
}

TEST(LoaderChecks, NameTheOptionItsRangeAndTheValue) {
  using Change = std::function<void(LoaderOptions&)>;
  const std::pair<Change, const char*> refused[] = {
      {[](auto& o) { o.batch_size = 0; }, "batch_size: …, got 0"},
      {[](auto& o) { o.batch_size = (1 << 24) + 1; }, "batch_size: …, got 16777217"},
      {[](auto& o) { o.ranks = 0; }, "ranks: …, got 0"},
      {[](auto& o) { o.rank = -1; }, "rank: …, got -1"},
      {[](auto& o) { o.ranks = o.rank = 3; }, "rank: …, got 3"},
      {[](auto& o) { o.ranks = 2, o.batch_size = 7; }, "batch_size: …, got 7"},
      {[](auto& o) { o.threads = 0; }, "threads: …, got 0"},
      {[](auto& o) { o.threads = 1025; }, "threads: …, got 1025"},
      {[](auto& o) { o.in_flight = 0; }, "in_flight: …, got 0"},
      {[](auto& o) { o.in_flight = 1025; }, "in_flight: …, got 1025"},
      {[](auto& o) { o.repeats = 0; }, "repeats: …, got 0"},
      {[](auto& o) { o.channels = 2; }, "channels: …, got 2"},
      {[](auto& o) { o.channels = 4; }, "channels: …, got 4"},
      {[](auto& o) { o.mix = {.cutmix_alpha = 1, .classes = 2}, o.unreadable = Unreadable::leave_out; },
       "unreadable: …, got leave_out"}};
  for (const auto& [change, message] : refused) {
    LoaderOptions options;
    change(options);
    EXPECT_ERROR_TEXT(error_of([&] { check(options); }), std::string("loader.") + message);
  }
  const Change accepted[] = {
      [](auto& o) { o.batch_size = 1, o.threads = 1, o.in_flight = 1, o.channels = 1; },
      [](auto& o) { o.batch_size = 1 << 24, o.threads = 1024, o.in_flight = 1024; },
      [](auto& o) { o.ranks = 3, o.rank = 2, o.batch_size = 2; }, [](auto& o) { o.unreadable = Unreadable::leave_out; },
      [](auto& o) { o.mix = {.mixup_alpha = 1, .classes = 2}, o.unreadable = Unreadable::replace; }};
  for (const Change& change : accepted) {
    LoaderOptions options;
    change(options);
    EXPECT_NO_THROW(check(options));
  }
  LoaderOptions mixed;
  mixed.mix.probability = 7;
  EXPECT_ERROR(error_of([&] { check(mixed); }), "mix.probability", "7");
}

TEST(LoaderChecks, NameTheSampleThatDoesNotFit) {
  const Noise dataset(20);  // labels 0 to 3
  const auto refusal = [&](const auto& change, const std::vector<int64_t>& samples) {
    LoaderOptions options;
    options.batch_size = 3;
    change(options);
    return error_of([&] { check(options, samples, dataset); });
  };
  const auto nothing = [](LoaderOptions&) {};
  EXPECT_ERROR(refusal(nothing, {0, 1, 20}), "loader.subset", "20");
  EXPECT_ERROR(refusal(nothing, {0, 1, -2}), "loader.subset", "-2");
  EXPECT_ERROR(refusal(nothing, {4, 5}), "loader.batch_size", "3");
  EXPECT_ERROR(refusal([](auto& o) { o.ranks = 2, o.batch_size = 2; }, {1, 2, 3}), "loader.batch_size", "4");
  EXPECT_ERROR(refusal([](auto& o) { o.mix = {.mixup_alpha = 1, .classes = 3}; }, {0, 1, 3}), "loader.mix.classes",
               "3");
  LoaderOptions options;
  options.batch_size = 3;
  EXPECT_NO_THROW(check(options, {0, 19, 5}, dataset));
  options.drop_last = false, options.batch_size = 100;
  EXPECT_NO_THROW(check(options, {0}, dataset));
  options.mix = {.mixup_alpha = 1, .classes = 4};
  EXPECT_NO_THROW(check(options, {3}, dataset));
}

TEST(LoaderOptions, HaveTheirDefaults) {
  const LoaderOptions options;
  EXPECT_EQ(options.batch_size, 64);
  EXPECT_EQ(options.rank, 0);
  EXPECT_EQ(options.ranks, 1);
  EXPECT_EQ(options.seed, 0u);
  EXPECT_EQ(options.threads, 1);
  EXPECT_EQ(options.in_flight, 3);
  EXPECT_TRUE(options.shuffle && options.drop_last);
  EXPECT_FALSE(options.balance || options.augment || options.mix.any());
  EXPECT_EQ(options.repeats, 1);
  EXPECT_EQ(options.classes, 0);
  EXPECT_EQ(options.channels, 3);
  EXPECT_EQ(options.unreadable, Unreadable::error);
}

}  // namespace
}  // namespace vitrail::data
