// SPDX-License-Identifier: Apache-2.0
// Batches at the ends of epochs, with unreadable images, and the options of evaluations.
#include <array>
#include <functional>
#include <memory>

#include "tests/data/noise_dataset.h"
#include "tests/data/support.h"
#include "tests/support/errors.h"
#include "vitrail/data/loader/decoded_cache.h"
#include "vitrail/data/loader/loader.h"

namespace vitrail::data {
namespace {

using Indices = std::vector<int64_t>;

LoaderOptions in_order(int64_t batch_size) {
  LoaderOptions options;
  options.batch_size = batch_size;
  options.shuffle = false;
  options.transform.size = {8, 8};
  options.transform.crop_pct = 1;
  return options;
}
std::vector<Batch> all_batches(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options) {
  Loader loader(std::move(dataset), options);
  loader.start(0);
  std::vector<Batch> batches;
  while (auto batch = loader.next()) batches.push_back(std::move(*batch));
  EXPECT_EQ(std::ssize(batches), loader.steps_per_epoch());
  EXPECT_FALSE(loader.next()) << "the end stays the end";
  return batches;
}

TEST(LoaderSteps, ALastBatchIsIncompleteOrLeftOut) {
  for (int64_t size = 1; size <= 9; ++size) {
    for (int64_t batch = 1; batch <= 5; ++batch) {
      LoaderOptions options = in_order(batch);
      options.drop_last = false;
      const auto batches = all_batches(std::make_shared<Noise>(size), options);
      Indices shown;
      for (const Batch& b : batches) {
        EXPECT_EQ(b.images.size(0), std::ssize(b.samples));
        EXPECT_EQ(b.positions.size(), b.samples.size());
        shown.insert(shown.end(), b.samples.begin(), b.samples.end());
      }
      EXPECT_EQ(std::ssize(shown), size);
      EXPECT_EQ(std::ssize(batches), (size + batch - 1) / batch);
      for (int64_t i = 0; i < size; ++i) EXPECT_EQ(shown[static_cast<size_t>(i)], i) << size << " " << batch;
      EXPECT_EQ(std::ssize(batches.back().samples), size - (std::ssize(batches) - 1) * batch);
      options.drop_last = true;
      if (size >= batch) {
        EXPECT_EQ(std::ssize(all_batches(std::make_shared<Noise>(size), options)), size / batch);
      }
    }
  }
}

TEST(LoaderSteps, AStepAfterTheLastIsTheEndAndALaterOneAnError) {
  Loader loader(std::make_shared<Noise>(20), in_order(5));
  loader.start(0, 4);
  EXPECT_FALSE(loader.next());
  EXPECT_TRUE(contains(error_of([&] { loader.start(0, 5); }), "a step from 0 to 4, got 5"));
  EXPECT_TRUE(contains(error_of([&] { loader.start(0, -1); }), "a step from 0 to 4, got -1"));
  loader.start(0, 3);
  EXPECT_EQ(loader.next()->samples, (Indices{15, 16, 17, 18, 19}));
}

TEST(LoaderSteps, ManyImagesAreInTheirOrderForEachNumberOfThreads) {
  for (const int64_t batch : {7, 8, 9, 16, 17, 31}) {
    LoaderOptions options = in_order(batch);
    options.threads = 3;
    const auto batches = all_batches(std::make_shared<Noise>(62), options);
    int64_t next = 0;
    for (const Batch& b : batches) {
      for (size_t i = 0; i < b.samples.size(); ++i) {
        EXPECT_EQ(b.samples[i], next++);
        EXPECT_EQ(b.positions[i], static_cast<int64_t>(i));
      }
    }
  }
}

// What is left of a batch keeps its positions: dropout is drawn for them.
TEST(LeftOutImages, TheOthersKeepTheirPositionsLabelsAndPixels) {
  LoaderOptions options = in_order(8);
  options.unreadable = Unreadable::leave_out;
  for (const std::set<int64_t>& broken :
       {std::set<int64_t>{0}, {7}, {3, 4}, {0, 2, 4, 6}, {1, 3, 5, 7}, {0, 1, 2, 3, 4, 5, 6}}) {
    const auto dataset = std::make_shared<Noise>(8, broken);
    const Batch batch = all_batches(dataset, options).at(0);
    Indices kept;
    for (int64_t i = 0; i < 8; ++i) {
      if (!broken.contains(i)) kept.push_back(i);
    }
    EXPECT_EQ(batch.samples, kept);
    EXPECT_EQ(batch.positions, kept);
    Indices skipped = batch.skipped;
    std::sort(skipped.begin(), skipped.end());
    EXPECT_EQ(skipped, Indices(broken.begin(), broken.end()));
    ASSERT_EQ(batch.images.size(0), std::ssize(kept));
    for (size_t i = 0; i < kept.size(); ++i) {
      EXPECT_EQ(batch.labels.data<int64_t>()[i], dataset->label(kept[i]));
      const Tensor want = image::apply(dataset->image(kept[i]), options.transform);
      const float* got = batch.images.data<float>() + static_cast<int64_t>(i) * want.numel();
      EXPECT_TRUE(std::equal(got, got + want.numel(), want.data<float>())) << i;
    }
  }
}

class Replacements : public ::testing::Test {
 protected:
  // A dataset with several labels.
  struct Tags : Noise {
    using Noise::Noise;
    bool is_multi_label() const override { return true; }
    std::vector<int64_t> labels(int64_t i) const override { return {i % 3, 3 + i % 2}; }
  };
  static LoaderOptions replacing() {
    LoaderOptions options = in_order(8);
    options.unreadable = Unreadable::replace;
    return options;
  }
  // Calls on_image(batch, i, sample, the one asked for) for each image of an epoch.
  static void for_each_image(const std::shared_ptr<const Dataset>& dataset, const LoaderOptions& options,
                             const std::function<void(const Batch&, int64_t, int64_t, int64_t)>& on_image) {
    int64_t asked = 0, replaced = 0;
    for (const Batch& batch : all_batches(dataset, options)) {
      for (int64_t i = 0; i < std::ssize(batch.samples); ++i, ++asked) {
        const int64_t sample = batch.samples[static_cast<size_t>(i)];
        replaced += sample != asked;
        on_image(batch, i, sample, asked);
      }
    }
    EXPECT_EQ(asked, 16);
    EXPECT_EQ(replaced, std::ssize(broken_));
  }
  static inline const std::set<int64_t> broken_{0, 3, 4, 9, 10, 15};
};

TEST_F(Replacements, HaveTheirOwnPixelsAndLabels) {
  const auto dataset = std::make_shared<Noise>(16, broken_);
  const LoaderOptions options = replacing();
  int others = 0;
  for_each_image(dataset, options, [&](const Batch& batch, int64_t i, int64_t sample, int64_t asked) {
    EXPECT_EQ(batch.labels.data<int64_t>()[i], dataset->label(sample));
    others += dataset->label(sample) != dataset->label(asked);
    const Tensor want = image::apply(dataset->image(sample), options.transform);
    const float* got = batch.images.data<float>() + i * want.numel();
    EXPECT_TRUE(std::equal(got, got + want.numel(), want.data<float>())) << i;
  });
  EXPECT_GT(others, 0) << "all have the label of the image asked for, so nothing was tested";
}

TEST_F(Replacements, HaveTheirOwnSeveralLabels) {
  LoaderOptions options = replacing();
  options.classes = 5;
  const auto dataset = std::make_shared<Tags>(16, broken_);
  for_each_image(dataset, options, [&](const Batch& batch, int64_t i, int64_t sample, int64_t) {
    const float* const row = batch.targets.data<float>() + 5 * i;
    std::vector<float> want(5);
    for (const int64_t label : dataset->labels(sample)) want[static_cast<size_t>(label)] = 1;
    EXPECT_EQ(std::vector<float>(row, row + 5), want) << sample;
  });
}

TEST_F(Replacements, HaveTheirOwnLabelsInMixup) {
  LoaderOptions options = replacing();
  options.mix.mixup_alpha = 1, options.mix.classes = 4;
  const auto dataset = std::make_shared<Noise>(16, broken_);
  for_each_image(dataset, options, [&](const Batch& batch, int64_t i, int64_t sample, int64_t) {
    const float* const row = batch.targets.data<float>() + 4 * i;
    const int64_t own = dataset->label(sample), partner = dataset->label(batch.samples[static_cast<size_t>(7 - i)]);
    for (int64_t c = 0; c < 4; ++c) EXPECT_EQ(row[c] > 0, c == own || c == partner) << i;
  });
}

TEST(LeftOutImages, ABatchMayBeEmpty) {
  LoaderOptions options = in_order(2);
  options.unreadable = Unreadable::leave_out;
  const auto batches = all_batches(std::make_shared<Noise>(4, std::set<int64_t>{0, 1}), options);
  EXPECT_EQ(batches[0].images.shape(), (Shape{0, 3, 8, 8}));
  EXPECT_EQ(batches[0].skipped.size(), 2u);
  EXPECT_EQ(batches[1].samples, (Indices{2, 3}));
}

TEST(EvaluationOptions, HaveNothingOfTraining) {
  LoaderOptions training;
  training.batch_size = 6;
  training.balance = true;
  training.repeats = 3;
  training.augment.emplace();
  training.mix.mixup_alpha = 1;
  training.subset = {3, 1};
  training.classes = 9;
  training.seed = 4;
  const LoaderOptions options = evaluation_options(training);
  EXPECT_FALSE(options.shuffle || options.balance || options.drop_last || options.augment || options.mix.any());
  EXPECT_EQ(options.repeats, 1);
  EXPECT_EQ(options.batch_size, 6);
  EXPECT_EQ(options.subset, training.subset);
  EXPECT_EQ(options.classes, 9);
  for (const auto& [before, after] : {std::pair{Unreadable::error, Unreadable::error},
                                      {Unreadable::replace, Unreadable::leave_out},
                                      {Unreadable::leave_out, Unreadable::leave_out}}) {
    training.unreadable = before;
    EXPECT_EQ(evaluation_options(training).unreadable, after);
  }
}

// A processor that keeps the aspect ratio gives images of several sizes, which make no batch.
TEST(LoaderSizes, ImagesThatBecomeAnotherSizeAreAnErrorThatNamesThem) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"a/1.png", "b/2.png"});  // 3×2 pixels
  LoaderOptions options = in_order(2);
  options.transform.processor =
      image::ProcessorSteps{.resize = image::ProcessorSteps::Resize::shortest_edge, .size = {8, 8}};
  Loader loader(open_dataset(root, {}), options);
  loader.start(0);
  const std::string message = error_of([&] { loader.next(); });
  EXPECT_TRUE(contains(message, "images that all become 8×8, got 12×8 for ")) << message;
}

TEST(DecodedCache, KeepsNamesAndIsTheDatasetItselfWithoutALimit) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"test/a/1.png", "test/b/2.png"});
  const std::shared_ptr<const Dataset> dataset = open_dataset(root, {});
  EXPECT_EQ(cache_decoded(dataset, 0), dataset);
  EXPECT_EQ(cache_decoded(dataset, -1), dataset);
  const auto cached = cache_decoded(dataset, 1 << 20);
  EXPECT_EQ(cached->class_names(), dataset->class_names());
  EXPECT_EQ(cached->split(), "test");
  EXPECT_EQ(cached->image(1).pixels, dataset->image(1).pixels);
  EXPECT_EQ(cached->image(1).pixels, dataset->image(1).pixels) << "from the cache";
}

TEST(LoaderOptionsOfManyRanks, AreEvenAndInRange) {
  const auto refusal = [](const auto& change) {
    LoaderOptions options = in_order(4);
    change(options);
    return error_of([&] { Loader(std::make_shared<Noise>(20), options); });
  };
  EXPECT_TRUE(contains(refusal([](auto& o) { o.rank = -1; }), "loader.rank: expected 0 to 0"));
  EXPECT_TRUE(contains(refusal([](auto& o) { o.ranks = 2, o.rank = 2; }), "loader.rank: expected 0 to 1"));
  EXPECT_TRUE(contains(refusal([](auto& o) { o.ranks = 0; }), "loader.ranks"));
  EXPECT_TRUE(contains(refusal([](auto& o) { o.batch_size = 0; }), "loader.batch_size"));
  EXPECT_TRUE(contains(refusal([](auto& o) { o.threads = 1025; }), "loader.threads"));
  EXPECT_TRUE(contains(refusal([](auto& o) { o.in_flight = 1025; }), "loader.in_flight"));
  EXPECT_TRUE(contains(refusal([](auto& o) { o.subset = {0, 1, 2, -1}; }), "loader.subset"));
  LoaderOptions limits = in_order(20);
  limits.threads = limits.in_flight = 1;
  EXPECT_NO_THROW(Loader(std::make_shared<Noise>(20), limits));
}

// Images that are higher than wide, mixed by boxes: each pixel of a batch is one of the two images', and the targets
// say how much of each there is.
TEST(LoaderShapes, BoxesOfHighImagesAreInTheTargets) {
  LoaderOptions options = in_order(6);
  options.transform.size = {12, 5};
  options.transform.crop_mode = image::CropMode::squash;
  options.mix = {.cutmix_alpha = 1, .mode = MixupOptions::Mode::element, .label_smoothing = 0.1, .classes = 5};
  const auto dataset = std::make_shared<Noise>(24);
  int64_t cut_images = 0;
  for (const Batch& batch : all_batches(dataset, options)) {
    ASSERT_EQ(batch.images.shape(), (Shape{6, 3, 12, 5}));
    ASSERT_EQ(batch.targets.shape(), (Shape{6, 5}));
    for (int64_t i = 0; i < 6; ++i) {
      const int64_t own = batch.samples[static_cast<size_t>(i)], other = batch.samples[static_cast<size_t>(5 - i)];
      const Tensor a = image::apply(dataset->image(own), options.transform),
                   b = image::apply(dataset->image(other), options.transform);
      const float* const got = batch.images.data<float>() + i * a.numel();
      int64_t of_other = 0;
      for (int64_t k = 0; k < a.numel(); ++k) {
        const float x = a.data<float>()[k], y = b.data<float>()[k];
        ASSERT_TRUE(got[k] == x || got[k] == y) << i << " " << k;
        of_other += k < 60 && got[k] == y && x != y;
      }
      cut_images += of_other > 0;
      const double share = static_cast<double>(of_other) / 60;
      const float* const target = batch.targets.data<float>() + i * 5;
      const int64_t own_label = dataset->label(own), other_label = dataset->label(other);
      for (int64_t c = 0; c < 5; ++c) {
        double want = 0.02;
        if (c == own_label) want += 0.9 * (1 - share);
        if (c == other_label) want += 0.9 * share;
        EXPECT_NEAR(target[c], want, 0.9 * 3 / 60) << "up to three pixels may be equal in both";
      }
    }
  }
  EXPECT_GT(cut_images, 10);
}

TEST(LoaderShapes, GreyImagesHaveOneChannel) {
  struct Grey : Noise {
    using Noise::Noise;
    image::Image image(int64_t i) const override {
      image::Image grey = image::make_image(8, 8, 1);
      std::fill(grey.pixels.begin(), grey.pixels.end(), static_cast<uint8_t>(10 * i));
      return grey;
    }
  };
  LoaderOptions options = in_order(3);
  options.channels = 1;
  options.transform.mean = {0}, options.transform.std = {1};
  const auto batches = all_batches(std::make_shared<Grey>(6), options);
  EXPECT_EQ(batches[1].images.shape(), (Shape{3, 1, 8, 8}));
  EXPECT_FLOAT_EQ(batches[1].images.data<float>()[64], 40 / 255.0F);
  LoaderOptions colour = in_order(3);
  Loader loader(std::make_shared<Grey>(6), colour);
  loader.start(0);
  EXPECT_ERROR(error_of([&] { loader.next(); }), "loader.channels", "1");
}

// Without shuffling nothing is balanced, and each rank has its part of every batch.
TEST(LoaderOrder, WithoutShufflingIsThatOfTheSubset) {
  LoaderOptions options = in_order(2);
  options.balance = true;
  options.subset = {7, 3, 5, 1};
  Indices shown;
  for (const Batch& batch : all_batches(std::make_shared<Noise>(9), options))
    shown.insert(shown.end(), batch.samples.begin(), batch.samples.end());
  EXPECT_EQ(shown, options.subset);
  options.balance = false;
  options.ranks = 2, options.rank = 1;
  const auto batches = all_batches(std::make_shared<Noise>(9), options);
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_EQ(batches[0].samples, (Indices{3, 5}));
  EXPECT_EQ(batches[0].positions, (Indices{1, 2}));
}

TEST(LoaderOrder, RepeatsShowASampleOfTheirOrderSeveralTimes) {
  LoaderOptions options = in_order(4);
  options.repeats = 3;
  options.drop_last = false;
  Indices shown;
  for (const Batch& batch : all_batches(std::make_shared<Noise>(10), options))
    shown.insert(shown.end(), batch.samples.begin(), batch.samples.end());
  EXPECT_EQ(shown, (Indices{0, 0, 0, 1, 1, 1, 2, 2, 2, 3}));
}

TEST(Loader, RefusalsSayWhatIsWrong) {
  Loader loader(std::make_shared<Noise>(20, std::set<int64_t>{3}), in_order(5));
  EXPECT_EQ(error_of([&] { loader.next(); }), "loader: start() comes before next()");
  EXPECT_ERROR(error_of([&] { loader.start(-1); }), "loader", "-1");
  loader.start(0);
  EXPECT_ERROR(error_of([&] { loader.next(); }), "noise/3", "noise");
  EXPECT_EQ(loader.options().batch_size, 5);
  LoaderOptions replacing = in_order(5);
  replacing.unreadable = Unreadable::replace;
  std::set<int64_t> all;
  for (int64_t i = 0; i < 5; ++i) all.insert(i);
  const auto unreadable = std::make_shared<Noise>(5, all);
  Loader hopeless(unreadable, replacing);
  hopeless.start(0);
  EXPECT_EQ(
      error_of([&] { hopeless.next(); }),
      "loader: expected a readable image to replace noise/0, got none in 100 draws (noise/0: expected an image, got "
      "noise)");
  EXPECT_EQ(unreadable->decoded, 1 + 100);
}

TEST(DecodedCache, KeepsWhatFitsAndNothingElse) {
  const auto inner = std::make_shared<Noise>(4);
  constexpr int64_t kImageBytes = 8 * 8 * 3;
  const auto cached = cache_decoded(inner, 2 * kImageBytes + kImageBytes - 1);
  for (const int64_t i : {0, 1, 2, 3, 0, 1, 2, 3}) EXPECT_EQ(cached->image(i).pixels, Noise(4).image(i).pixels) << i;
  EXPECT_EQ(inner->decoded, 6) << "the first two are kept";
  EXPECT_FALSE(cached->is_multi_label());
  EXPECT_EQ(cached->labels(2), std::vector<int64_t>{2});
  EXPECT_EQ(cache_decoded(inner, 1)->image(1).pixels, Noise(4).image(1).pixels);
}

// Seventeen images are eight pairs in two chunks; the middle one belongs to the last of them alone.
TEST(LeftOutImages, TheMiddleOfAnOddBatchIsReadOnce) {
  LoaderOptions options = in_order(17);
  const auto readable = std::make_shared<Noise>(17);
  EXPECT_EQ(all_batches(readable, options).at(0).samples.size(), 17u);
  EXPECT_EQ(readable->decoded, 17);
  options.unreadable = Unreadable::leave_out;
  const Batch batch = all_batches(std::make_shared<Noise>(17, std::set<int64_t>{8}), options).at(0);
  EXPECT_EQ(batch.skipped, Indices{8});
  EXPECT_EQ(batch.samples.size(), 16u);
}

}  // namespace
}  // namespace vitrail::data
