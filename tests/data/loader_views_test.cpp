// SPDX-License-Identifier: Apache-2.0
// Several views of each image in a batch.
#include <algorithm>
#include <map>

#include "tests/data/augment_testing.h"
#include "tests/data/noise_dataset.h"
#include "tests/data/support.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/data/loader/loader.h"

namespace vitrail::data {
namespace {

AugmentOptions cropped(std::array<double, 2> scale) {
  AugmentOptions options;
  options.random_resized_crop = RandomResizedCrop{.scale = scale};
  options.flip = Flip::random;
  options.color_jitter = ColorJitter{.brightness = 0.4, .hue = 0.1};
  options.grayscale = 0.3;
  options.erasing.probability = 0.5;
  return options;
}

// Two views of 8×8 pixels and three of 6×4.
LoaderOptions two_groups(int64_t batch_size) {
  LoaderOptions options;
  options.batch_size = batch_size;
  options.seed = 5;
  options.transform = transform(8);
  options.views = {{.count = 2, .size = {8, 8}, .augment = cropped({0.3, 1})},
                   {.count = 3, .size = {6, 4}, .augment = cropped({0.05, 0.3})}};
  return options;
}

std::vector<Batch> epoch_of(Loader& loader, int64_t epoch) {
  std::vector<Batch> batches;
  loader.start(epoch);
  while (auto batch = loader.next()) batches.push_back(std::move(*batch));
  return batches;
}

// The views of each sample, by group.
std::map<int64_t, std::vector<Tensor>> by_sample(const std::vector<Batch>& batches) {
  std::map<int64_t, std::vector<Tensor>> views;
  for (const Batch& batch : batches) {
    const auto images = std::ssize(batch.samples);
    for (const Tensor& group : batch.views) {
      const Tensor by_view = group.view({-1, images, group.size(1), group.size(2), group.size(3)});
      for (int64_t i = 0; i < images; ++i) views[batch.samples[static_cast<size_t>(i)]].push_back(by_view.select(1, i));
    }
  }
  return views;
}

void expect_same(const std::map<int64_t, std::vector<Tensor>>& got,
                 const std::map<int64_t, std::vector<Tensor>>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (const auto& [sample, views] : got) {
    ASSERT_EQ(views.size(), expected.at(sample).size());
    for (size_t g = 0; g < views.size(); ++g) EXPECT_TRUE(testing::close(views[g], expected.at(sample)[g], 0));
  }
}

TEST(LoaderViews, EqualSingleAugmentationsByTheirKeys) {
  const auto dataset = std::make_shared<Noise>(11);
  const LoaderOptions options = two_groups(5);
  Loader loader(dataset, options);
  for (const Batch& batch : epoch_of(loader, 3)) {
    EXPECT_FALSE(batch.images.defined());
    EXPECT_EQ(batch.labels.shape(), (Shape{5}));
    ASSERT_EQ(batch.views.size(), 2u);
    EXPECT_EQ(batch.views[0].shape(), (Shape{2 * 5, 3, 8, 8}));
    EXPECT_EQ(batch.views[1].shape(), (Shape{3 * 5, 3, 6, 4}));
    int64_t number = 0;
    for (size_t g = 0; g < 2; ++g) {
      image::EvalTransform size = options.transform;
      size.size = options.views[g].size;
      const Augmentation augmentation(options.views[g].augment, size);
      for (int64_t v = 0; v < options.views[g].count; ++v, ++number) {
        for (int64_t i = 0; i < 5; ++i) {
          const int64_t sample = batch.samples[static_cast<size_t>(i)];
          const Tensor want = Tensor::empty({3, size.size[0], size.size[1]});
          augmentation.apply_into(dataset->image(sample), {.seed = 5, .epoch = 3, .sample = sample, .view = number},
                                  want.data<float>());
          EXPECT_TRUE(testing::close(batch.views[g].select(0, v * 5 + i), want, 0)) << g << " " << v << " " << i;
        }
      }
    }
  }
}

// A run with one view per image draws as before: the first view has its key.
TEST(LoaderViews, TheFirstIsThatOfASingleViewLoader) {
  const auto dataset = std::make_shared<Noise>(8);
  LoaderOptions several = two_groups(4), single = several;
  single.views.clear();
  single.augment = several.views[0].augment;
  Loader views(dataset, several), images(dataset, single);
  const std::vector<Batch> got = epoch_of(views, 1), want = epoch_of(images, 1);
  for (size_t step = 0; step < want.size(); ++step) {
    EXPECT_EQ(got[step].samples, want[step].samples);
    EXPECT_TRUE(want[step].views.empty());
    EXPECT_TRUE(testing::close(got[step].views[0].narrow(0, 0, 4), want[step].images, 0));
    EXPECT_FALSE(testing::close(got[step].views[0].narrow(0, 4, 4), want[step].images, 0));
  }
}

TEST(LoaderViews, AreAugmentedByAlternatingFlips) {
  const image::Image source = noise_image(8, 8);
  AugmentOptions options;
  options.flip = Flip::alternate;
  const Augmentation augmentation(options, transform(8));
  const auto at = [&](int64_t view) { return augmentation.augmented_image(source, {.view = view}).pixels; };
  EXPECT_NE(at(0), at(1));
  EXPECT_EQ(at(0), at(2));
}

TEST(LoaderViews, OfReadableImagesStayInTheirRows) {
  LoaderOptions options = two_groups(6);
  options.drop_last = false;
  Loader whole(std::make_shared<Noise>(12), options);
  options.unreadable = Unreadable::leave_out;
  Loader partial(std::make_shared<Noise>(12, std::set<int64_t>{0, 3, 4, 11}), options);
  std::map<int64_t, std::vector<Tensor>> expected = by_sample(epoch_of(whole, 0));
  for (const int64_t broken : {0, 3, 4, 11}) expected.erase(broken);
  const std::vector<Batch> batches = epoch_of(partial, 0);
  for (const Batch& batch : batches) {
    EXPECT_EQ(batch.views[1].size(0), 3 * std::ssize(batch.samples));
    EXPECT_EQ(batch.labels.size(0), std::ssize(batch.samples));
  }
  expect_same(by_sample(batches), expected);
}

TEST(LoaderViews, DoNotDependOnThreadsAndRanks) {
  const auto dataset = std::make_shared<Noise>(24);
  Loader one(dataset, two_groups(8));
  const auto expected = by_sample(epoch_of(one, 2));
  LoaderOptions options = two_groups(8);
  options.threads = 3;
  Loader threaded(dataset, options);
  expect_same(by_sample(epoch_of(threaded, 2)), expected);
  std::map<int64_t, std::vector<Tensor>> of_ranks;
  for (const int rank : {0, 1}) {
    LoaderOptions half = two_groups(4);
    half.rank = rank, half.ranks = 2;
    Loader loader(dataset, half);
    of_ranks.merge(by_sample(epoch_of(loader, 2)));
  }
  expect_same(of_ranks, expected);
}

TEST(LoaderViews, AreNotForEvaluationAndRefuseOtherOptions) {
  EXPECT_TRUE(evaluation_options(two_groups(4)).views.empty());
  const auto message = [](const auto& change) {
    LoaderOptions options = two_groups(4);
    change(options);
    return error_of([&] { Loader(std::make_shared<Noise>(8), options); });
  };
  EXPECT_ERROR(message([](auto& o) { o.augment.emplace(); }), "loader.views", "one");
  EXPECT_ERROR(message([](auto& o) { o.mix.mixup_alpha = 1, o.mix.classes = 4; }), "loader.views", "one");
  EXPECT_ERROR(message([](auto& o) { o.views[1].count = 0; }), "loader.views.count", "0");
  EXPECT_ERROR(message([](auto& o) { o.views[1].count = 65; }), "loader.views.count", "65");
  EXPECT_ERROR(message([](auto& o) { o.views[1].size = {0, 4}; }), "augment.size", "0");
}

}  // namespace
}  // namespace vitrail::data
