// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/loader/loader.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "tests/data/noise_dataset.h"
#include "tests/data/support.h"
#include "vitrail/base/random.h"
#include "vitrail/data/loader/decoded_cache.h"

namespace vitrail::data {
namespace {

LoaderOptions small(int64_t batch_size) {
  LoaderOptions options;
  options.batch_size = batch_size;
  options.transform.size = {8, 8};
  options.transform.crop_pct = 1;
  options.augment.emplace();
  options.augment->padded_crop = PaddedCrop{.padding = 1};
  options.augment->flip = Flip::random;
  options.augment->erasing.probability = 0.5;
  return options;
}

std::vector<Batch> epoch_of(Loader& loader, int64_t epoch, int64_t first_step = 0) {
  loader.start(epoch, first_step);
  std::vector<Batch> batches;
  while (auto batch = loader.next()) batches.push_back(std::move(*batch));
  return batches;
}

template <class T>
std::vector<T> elements(const Tensor& tensor) {
  if (!tensor.defined()) return {};
  const Tensor dense = tensor.contiguous();
  return {dense.data<T>(), dense.data<T>() + dense.numel()};
}

void expect_same(const Batch& a, const Batch& b) {
  EXPECT_EQ(a.samples, b.samples);
  EXPECT_EQ(elements<int64_t>(a.labels), elements<int64_t>(b.labels));
  EXPECT_EQ(elements<float>(a.images), elements<float>(b.images));
  EXPECT_EQ(elements<float>(a.targets), elements<float>(b.targets));
  EXPECT_EQ(a.skipped, b.skipped);
}

std::vector<int64_t> samples_of(const std::vector<Batch>& batches) {
  std::vector<int64_t> all;
  for (const Batch& batch : batches) all.insert(all.end(), batch.samples.begin(), batch.samples.end());
  return all;
}

TEST(LoaderConcurrent, BatchesDoNotDependOnThreadsAndPrefetching) {
  const auto dataset = std::make_shared<Noise>(50);
  LoaderOptions options = small(12);
  options.mix.mixup_alpha = 1, options.mix.cutmix_alpha = 1, options.mix.classes = 4;
  Loader reference(dataset, options);
  const auto expected = epoch_of(reference, 3);
  ASSERT_EQ(expected.size(), 4u);
  for (const int threads : {1, 2, 5}) {
    for (const int64_t in_flight : {1, 2, 7}) {
      options.threads = threads, options.in_flight = in_flight;
      Loader loader(dataset, options);
      const auto got = epoch_of(loader, 3);
      ASSERT_EQ(got.size(), expected.size());
      for (size_t i = 0; i < got.size(); ++i) expect_same(got[i], expected[i]);
    }
  }
}

TEST(Loader, AnEpochIsAPermutationOfTheSamples) {
  const auto dataset = std::make_shared<Noise>(48);
  Loader loader(dataset, small(12));
  std::vector<int64_t> first = samples_of(epoch_of(loader, 0)), second = samples_of(epoch_of(loader, 1));
  EXPECT_NE(first, second);
  EXPECT_EQ(samples_of(epoch_of(loader, 0)), first);
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  EXPECT_EQ(first, second);
  for (int64_t i = 0; i < 48; ++i) EXPECT_EQ(first[i], i);
}

// With eight classes, sample i of Noise has the label i % 10 if that is below 8.  The subset has ten images of class 0,
// two of class 1 and one of class 2.
TEST(Loader, ABalancedEpochHasEquallyManyImagesOfEachClass) {
  const auto dataset = std::make_shared<Noise>(200, std::set<int64_t>{}, 8);
  LoaderOptions options = small(13);
  for (int64_t i = 0; i < 10; ++i) options.subset.push_back(10 * i);
  options.subset.insert(options.subset.end(), {1, 11, 2});
  options.balance = true;
  Loader loader(dataset, options);
  std::map<int64_t, int64_t> labels, samples;
  for (int64_t epoch = 0; epoch < 30; ++epoch) {
    std::map<int64_t, int64_t> in_epoch;
    for (const Batch& batch : epoch_of(loader, epoch)) {
      for (const int64_t sample : batch.samples) ++in_epoch[sample % 10], ++samples[sample];
    }
    for (const auto& [label, count] : in_epoch) {
      EXPECT_TRUE(count == 4 || count == 5) << label;
      labels[label] += count;
    }
  }
  for (const auto& [label, count] : labels) EXPECT_EQ(count, 130) << label;
  for (const auto& [sample, count] : samples) {
    const double expected = sample % 10 == 0 ? 13 : sample % 10 == 1 ? 65 : 130;
    EXPECT_NEAR(static_cast<double>(count), expected, 4) << sample;  // a pass begins in one epoch and ends in another
  }
}

TEST(Loader, RepeatedImagesOfABalancedEpochAreAugmentedDifferently) {
  LoaderOptions options = small(8);
  options.subset = {0, 10, 20, 30, 40, 50, 60, 1};
  options.balance = true;
  Loader loader(std::make_shared<Noise>(100, std::set<int64_t>{}, 8), options);
  const Batch batch = epoch_of(loader, 0).at(0);
  std::set<std::vector<float>> images;
  for (int64_t i = 0; i < 8; ++i) {
    if (batch.samples[static_cast<size_t>(i)] == 1) images.insert(elements<float>(batch.images.select(0, i)));
  }
  EXPECT_GE(images.size(), 3u);  // four times the same image
}

TEST(Loader, StartsAtAnyStepWithoutReadingEarlierSamples) {
  const auto dataset = std::make_shared<Noise>(60);
  Loader loader(dataset, small(10));
  const auto full = epoch_of(loader, 2);
  dataset->decoded = 0;
  const auto resumed = epoch_of(loader, 2, 4);
  EXPECT_EQ(dataset->decoded, 20);
  ASSERT_EQ(resumed.size(), 2u);
  expect_same(resumed[0], full[4]);
  expect_same(resumed[1], full[5]);
  EXPECT_TRUE(epoch_of(loader, 2, 6).empty());
  loader.start(2, 0);
  loader.next();
  loader.start(2, 5);  // cancels the running epoch
  expect_same(*loader.next(), full[5]);
}

TEST(Loader, LabelsBelongToTheSamples) {
  const auto dataset = std::make_shared<Noise>(30);
  Loader loader(dataset, small(7));
  for (const Batch& batch : epoch_of(loader, 0)) {
    EXPECT_EQ(batch.images.shape(), (Shape{7, 3, 8, 8}));
    EXPECT_FALSE(batch.targets.defined());
    for (size_t i = 0; i < batch.samples.size(); ++i) {
      EXPECT_EQ(batch.labels.data<int64_t>()[i], dataset->label(batch.samples[i]));
    }
  }
}

TEST(Loader, EvaluationAppliesTheEvaluationTransformInOrder) {
  const auto dataset = std::make_shared<Noise>(11);
  LoaderOptions options = evaluation_options(small(4));
  options.subset = {9, 2, 5, 1, 7, 3};
  Loader loader(dataset, options);
  EXPECT_EQ(loader.steps_per_epoch(), 2);
  const auto batches = epoch_of(loader, 5);
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_EQ(samples_of(batches), options.subset);
  EXPECT_EQ(batches[1].images.shape(), (Shape{2, 3, 8, 8}));
  const Tensor expected = image::apply(dataset->image(2), options.transform);
  EXPECT_EQ(elements<float>(batches[0].images.select(0, 1)), elements<float>(expected));
}

// Ranks see together the images that one process sees, mixed with the same partners.
TEST(Loader, RanksTogetherSeeWhatOneProcessSees) {
  const auto dataset = std::make_shared<Noise>(53);
  for (const auto mode : {MixupOptions::Mode::batch, MixupOptions::Mode::element}) {
    LoaderOptions options = small(12);
    options.mix.mixup_alpha = 1, options.mix.cutmix_alpha = 1, options.mix.classes = 4, options.mix.mode = mode;
    options.drop_last = false;
    Loader one(dataset, options);
    const auto single = epoch_of(one, 1);
    for (const int ranks : {2, 3}) {
      options.ranks = ranks, options.batch_size = 12 / ranks;
      std::map<std::pair<size_t, int64_t>, std::pair<std::vector<float>, std::vector<float>>> seen;  // step, sample
      for (options.rank = 0; options.rank < ranks; ++options.rank) {
        Loader loader(dataset, options);
        const auto part = epoch_of(loader, 1);
        ASSERT_EQ(part.size(), single.size());
        for (size_t step = 0; step < part.size(); ++step) {
          for (size_t i = 0; i < part[step].samples.size(); ++i) {
            const auto [at, fresh] =
                seen.emplace(std::pair(step, part[step].samples[i]),
                             std::pair(elements<float>(part[step].images.select(0, static_cast<int64_t>(i))),
                                       elements<float>(part[step].targets.select(0, static_cast<int64_t>(i)))));
            EXPECT_TRUE(fresh) << "two ranks show sample " << part[step].samples[i];
          }
        }
      }
      EXPECT_EQ(seen.size(), 53u);
      for (size_t step = 0; step < single.size(); ++step) {
        for (size_t i = 0; i < single[step].samples.size(); ++i) {
          const auto& [image, target] = seen.at({step, single[step].samples[i]});
          EXPECT_EQ(image, elements<float>(single[step].images.select(0, static_cast<int64_t>(i))));
          EXPECT_EQ(target, elements<float>(single[step].targets.select(0, static_cast<int64_t>(i))));
        }
      }
    }
    options.ranks = 1, options.rank = 0;
  }
}

TEST(Loader, TargetsSayWhatWasMixed) {
  const auto dataset = std::make_shared<Noise>(16);
  LoaderOptions options = small(16);
  options.augment.reset();
  options.mix.mixup_alpha = 1, options.mix.classes = 4, options.mix.off_epoch = 1;
  Loader loader(dataset, options);
  const Batch batch = epoch_of(loader, 0).at(0);
  const double lambda = draw_mixup(options.mix, options.seed, 0, 0, 0, 8, 8).lambda;
  const Tensor own = image::apply(dataset->image(batch.samples[3]), options.transform);
  const Tensor partner = image::apply(dataset->image(batch.samples[12]), options.transform);
  const float got = elements<float>(batch.images.select(0, 3))[17];
  EXPECT_FLOAT_EQ(got, static_cast<float>(lambda) * own.data<float>()[17] +
                           static_cast<float>(1 - lambda) * partner.data<float>()[17]);
  for (int64_t i = 0; i < 16; ++i) {
    const std::vector<float> row = elements<float>(batch.targets.select(0, i));
    const int64_t a = dataset->label(batch.samples[i]), b = dataset->label(batch.samples[15 - i]);
    EXPECT_FLOAT_EQ(row[a], a == b ? 1.0f : static_cast<float>(lambda));
  }
  EXPECT_FALSE(epoch_of(loader, 1).at(0).targets.defined());
}

TEST(Loader, RepeatedAugmentationShowsASampleSeveralTimesInARow) {
  const auto dataset = std::make_shared<Noise>(30);
  LoaderOptions options = small(10);
  options.repeats = 3;
  Loader loader(dataset, options);
  const std::vector<Batch> batches = epoch_of(loader, 0);
  std::map<int64_t, std::set<std::vector<float>>> looks;
  std::map<int64_t, int> counts;
  for (const Batch& batch : batches) {
    for (size_t i = 0; i < batch.samples.size(); ++i) {
      ++counts[batch.samples[i]];
      looks[batch.samples[i]].insert(elements<float>(batch.images.select(0, static_cast<int64_t>(i))));
    }
  }
  EXPECT_EQ(samples_of(batches).size(), 30u);
  EXPECT_EQ(counts.size(), 10u);
  for (const auto& [sample, count] : counts) EXPECT_EQ(count, 3) << sample;
  for (const auto& [sample, different] : looks) EXPECT_GT(different.size(), 1u) << sample;
}

TEST(Loader, AfterAnUnreadableImageTheNextBatchFollows) {
  const auto dataset = std::make_shared<Noise>(20, std::set<int64_t>{6});
  LoaderOptions options = evaluation_options(small(5));
  Loader loader(dataset, options);
  loader.start(0);
  EXPECT_EQ(loader.next()->samples[0], 0);
  EXPECT_TRUE(contains(error_of([&] { loader.next(); }), "noise/6"));
  EXPECT_EQ(loader.next()->samples[0], 10);
}

TEST(Loader, ReplacementsAreReproducible) {
  const auto dataset = std::make_shared<Noise>(20, std::set<int64_t>{6, 13});
  LoaderOptions options = small(5);
  options.unreadable = Unreadable::replace;
  Loader loader(dataset, options);
  const auto batches = epoch_of(loader, 0), again = epoch_of(loader, 0);
  std::vector<int64_t> skipped;
  for (size_t i = 0; i < batches.size(); ++i) {
    expect_same(batches[i], again[i]);
    EXPECT_EQ(batches[i].samples.size(), 5u);
    for (const int64_t sample : batches[i].samples) EXPECT_TRUE(sample != 6 && sample != 13);
    skipped.insert(skipped.end(), batches[i].skipped.begin(), batches[i].skipped.end());
  }
  std::sort(skipped.begin(), skipped.end());
  EXPECT_EQ(skipped, (std::vector<int64_t>{6, 13}));
}

// The only readable sample stands for the other one too, but is augmented again.
TEST(Loader, AReplacementHasOtherDrawsThanItsSampleAtItsOwnPosition) {
  const auto dataset = std::make_shared<Noise>(2, std::set<int64_t>{1});
  LoaderOptions options = small(2);
  options.unreadable = Unreadable::replace;
  options.augment.emplace();
  options.augment->random_resized_crop.emplace();
  Loader loader(dataset, options);
  const auto batches = epoch_of(loader, 0);
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_EQ(batches[0].samples, (std::vector<int64_t>{0, 0}));
  EXPECT_NE(elements<float>(batches[0].images.select(0, 0)), elements<float>(batches[0].images.select(0, 1)));
}

// Epochs that mix images have no view of their own.
TEST(Loader, TheViewOfAnEpochIsThatOfItsAugmentation) {
  for (const bool mixes : {false, true}) {
    LoaderOptions options = small(5);
    options.augment.emplace();
    options.augment->views = 3;
    if (mixes) options.mix.mixup_alpha = 1, options.mix.classes = 4;
    Loader loader(std::make_shared<Noise>(20), options);
    for (const int64_t epoch : {0, 1, 4})
      EXPECT_EQ(epoch_of(loader, epoch).at(0).view, mixes ? -1 : options.augment->view_of(epoch)) << epoch;
  }
}

TEST(Loader, AnUnreadableImageCanShortenItsBatch) {
  const auto dataset = std::make_shared<Noise>(10, std::set<int64_t>{1, 7});
  LoaderOptions options = small(5);
  options.unreadable = Unreadable::replace;
  Loader loader(dataset, evaluation_options(options));
  const auto batches = epoch_of(loader, 0);
  EXPECT_EQ(samples_of(batches), (std::vector<int64_t>{0, 2, 3, 4, 5, 6, 8, 9}));
  EXPECT_EQ(batches[0].images.shape(), (Shape{4, 3, 8, 8}));
  EXPECT_EQ(batches[0].labels.data<int64_t>()[1], dataset->label(2));
  EXPECT_EQ(elements<float>(batches[0].images.select(0, 1)),
            elements<float>(image::apply(dataset->image(2), options.transform)));
  EXPECT_EQ(batches[1].skipped, (std::vector<int64_t>{7}));
}

TEST(Loader, AMissingFileIsNamedOrSkipped) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"train/cat/1.png", "train/cat/2.png", "train/dog/1.png", "train/dog/2.png"});
  const std::shared_ptr<const Dataset> dataset = open_dataset(root, {.split = "train"});
  fs::remove(root / "train/cat/2.png");
  LoaderOptions options = small(4);
  Loader strict(dataset, options);
  strict.start(0);
  EXPECT_TRUE(contains(error_of([&] { strict.next(); }), "cat/2.png"));
  options.unreadable = Unreadable::replace;
  Loader lenient(dataset, options);
  lenient.start(0);
  EXPECT_EQ(lenient.next()->skipped, (std::vector<int64_t>{1}));
}

TEST(Loader, ADatasetWithNothingReadableIsAnError) {
  std::set<int64_t> all;
  for (int64_t i = 0; i < 10; ++i) all.insert(i);
  LoaderOptions options = small(5);
  options.unreadable = Unreadable::replace;
  Loader loader(std::make_shared<Noise>(10, all), options);
  loader.start(0);
  EXPECT_TRUE(contains(error_of([&] { loader.next(); }), "100 draws"));
}

TEST(Loader, ABatchThatExceedsMemoryIsAnError) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizers' allocators end the process instead";
#endif
  LoaderOptions options = small(4);
  options.augment.reset();
  options.batch_size = 1 << 20;
  options.drop_last = false;
  options.transform.size = {1 << 16, 1 << 16};
  options.subset.assign(1 << 20, 0);
  Loader loader(std::make_shared<Noise>(1), options);
  loader.start(0);
  EXPECT_TRUE(contains(error_of([&] { loader.next(); }), "memory for batch 0"));
}

TEST(Loader, OptionsOutOfRangeAreErrorsThatNameThem) {
  const auto dataset = std::make_shared<Noise>(20);
  const auto refused = [&](const std::string& part, auto change) {
    LoaderOptions options = small(4);
    change(options);
    EXPECT_TRUE(contains(error_of([&] { Loader(dataset, options); }), part)) << part;
  };
  refused("at most the 20 samples of the dataset, got 21", [](auto& o) { o.batch_size = 21; });
  refused("over all ranks", [](auto& o) { o.batch_size = 12, o.ranks = 2; });
  refused("even number", [](auto& o) { o.batch_size = 5, o.ranks = 2; });
  refused("loader.rank", [](auto& o) { o.rank = 1; });
  refused("loader.threads", [](auto& o) { o.threads = 0; });
  refused("loader.in_flight", [](auto& o) { o.in_flight = 0; });
  refused("loader.repeats", [](auto& o) { o.repeats = 0; });
  refused("loader.channels", [](auto& o) { o.channels = 2; });
  refused("loader.subset", [](auto& o) { o.subset = {0, 1, 2, 3, 20}; });
  refused("loader.unreadable",
          [](auto& o) { o.mix.mixup_alpha = 1, o.mix.classes = 4, o.unreadable = Unreadable::leave_out; });
  refused("mix.classes", [](auto& o) { o.mix.mixup_alpha = 1, o.mix.classes = 3; });
  Loader loader(dataset, small(4));
  EXPECT_THROW(loader.next(), Error) << "not started";
  EXPECT_THROW(loader.start(-1), Error);
  EXPECT_THROW(loader.start(0, 6), Error);
  LoaderOptions grey = small(4);
  grey.channels = 1;
  Loader wrong(dataset, grey);
  wrong.start(0);
  EXPECT_TRUE(contains(error_of([&] { wrong.next(); }), "loader.channels"));
}

TEST(Loader, WaitingIsMeasured) {
  Loader loader(std::make_shared<Noise>(40), small(20));
  EXPECT_EQ(loader.waited_seconds(), 0);
  loader.start(0);
  loader.next();
  const double waited = loader.waited_seconds();
  EXPECT_GT(waited, 0);
  loader.next();
  EXPECT_GE(loader.waited_seconds(), waited);
}

TEST(DecodedCacheConcurrent, ImagesAreDecodedOnceUpToTheLimit) {
  const auto inner = std::make_shared<Noise>(40);
  constexpr int64_t kImageBytes = 8 * 8 * 3;
  for (const int64_t capacity : {40, 25, 0}) {
    inner->decoded = 0;
    const auto cached = cache_decoded(inner, capacity * kImageBytes);
    LoaderOptions options = small(20);
    options.threads = 3;
    Loader loader(cached, options);
    const auto first = epoch_of(loader, 0);
    EXPECT_EQ(inner->decoded, 40);
    const auto again = epoch_of(loader, 0);
    EXPECT_EQ(inner->decoded, 80 - capacity);
    for (size_t i = 0; i < first.size(); ++i) expect_same(first[i], again[i]);
  }
}

}  // namespace
}  // namespace vitrail::data
