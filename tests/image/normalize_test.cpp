// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/normalize_internal.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"

namespace vitrail::image {
namespace {

using Values = std::vector<float>;

EvalTransform transform_of(const std::vector<double>& mean, const std::vector<double>& std) {
  EvalTransform transform;
  transform.mean = mean, transform.std = std;
  return transform;
}
Values normalized(const EvalTransform& transform, const Image& image) {
  Values out(image.pixels.size());
  Normalizer(transform).apply_into(image, out.data());
  return out;
}

const Image kColour{2, 1, 3, {0, 51, 255, 102, 204, 153}};

TEST(Normalizer, HasAPlaneForEachChannel) {
  const Values got = normalized(transform_of({0.5, 0.25, 0}, {0.5, 0.25, 2}), kColour);
  const Values want{-1, -0.2F, -0.2F, 2.2F, 0.5F, 0.3F};
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(got[i], want[i], 5e-7) << i;
}

TEST(Normalizer, OneMeanOrOneStdIsThatOfAllChannels) {
  const Values both = normalized(transform_of({0.5}, {0.25}), kColour);
  for (size_t i = 0; i < 6; ++i) {
    const double x = kColour.pixels[i % 2 * 3 + i / 2] / 255.0;
    EXPECT_NEAR(both[i], (x - 0.5) / 0.25, 5e-7) << i;
    EXPECT_NEAR(normalized(transform_of({0.5}, {1, 2, 4}), kColour)[i], (x - 0.5) / std::pow(2, i / 2), 5e-7) << i;
    EXPECT_NEAR(normalized(transform_of({0, 0.25, 0.5}, {0.5}), kColour)[i],
                (x - 0.25 * static_cast<double>(i / 2)) / 0.5, 5e-7)
        << i;
  }
  const Image grey{3, 1, 1, {0, 51, 255}};
  EXPECT_EQ(normalized(transform_of({0.5}, {0.5}), grey).back(), 1);
}

TEST(Normalizer, DoesTheStepsOfAProcessor) {
  EvalTransform transform = transform_of({1, 2, 3}, {2, 4, 8});
  const Image image{1, 1, 3, {10, 20, 255}};
  transform.processor.emplace();
  transform.processor->rescale = 0.5;
  EXPECT_EQ(normalized(transform, image), (Values{2, 2, 15.5625F}));
  transform.processor->rescale = 1;
  EXPECT_EQ(normalized(transform, image), (Values{4.5F, 4.5F, 31.5F}));
  transform.mean = {0}, transform.std = {1};  // without do_normalize
  EXPECT_EQ(normalized(transform, image), (Values{10, 20, 255}));
  transform.processor->rescale = 0.25;
  EXPECT_EQ(normalized(transform, image), (Values{2.5F, 5, 63.75F}));
}

// The same of floats, whose channels may be in the other order.
TEST(NormalizeFloats, DoesTheStepsOfAProcessor) {
  EvalTransform transform = transform_of({1, 2, 3}, {2, 4, 8});
  transform.processor.emplace();
  const Values pixels{10, 20, 255, 1, 2, 3};  // two pixels
  const auto run = [&](bool reversed) {
    Values out(6);
    normalize_floats(transform, pixels, 3, reversed, out.data());
    return out;
  };
  transform.processor->rescale = 0.5;
  EXPECT_EQ(run(false), (Values{2, -0.25F, 2, -0.25F, 15.5625F, -0.1875F}));
  EXPECT_EQ(run(true), (Values{63.25F, 0.25F, 2, -0.25F, 0.25F, -0.3125F}));
  transform.processor->rescale = 1;
  EXPECT_EQ(run(false), (Values{4.5F, 0, 4.5F, 0, 31.5F, 0}));
  transform.mean = {0}, transform.std = {1};
  EXPECT_EQ(run(false), (Values{10, 1, 20, 2, 255, 3}));
  EXPECT_EQ(run(true), (Values{255, 3, 20, 2, 10, 1}));
  Values grey(6);
  normalize_floats(transform, pixels, 1, false, grey.data());
  EXPECT_EQ(grey, pixels);
}

TEST(Statistics, AreOnePositiveValueOrOneForEachChannel) {
  const auto refusal = [](const std::vector<double>& mean, const std::vector<double>& std, int64_t channels) {
    return testing::error_of([&] { check_statistics(transform_of(mean, std), channels); });
  };
  const std::string begin = "image transform: expected ";
  EXPECT_EQ(refusal({1, 2}, {1}, 3), begin + "mean and std with 3 values, got 2");
  EXPECT_EQ(refusal({1}, {1, 1, 1, 1}, 3), begin + "mean and std with 3 values, got 4");
  EXPECT_EQ(refusal({}, {1}, 3), begin + "mean and std with 3 values, got 0");
  EXPECT_EQ(refusal({1, 2, 3}, {1}, 1), begin + "mean and std with 1 values, got 3");
  EXPECT_EQ(refusal({1}, {0}, 3), begin + "a positive std, got 0");
  EXPECT_EQ(refusal({1}, {1, 1, -1}, 3), begin + "a positive std, got -1");
  EXPECT_EQ(refusal({1}, {std::nan("")}, 1), begin + "a positive std, got nan");
  for (const int64_t channels : {1, 3}) EXPECT_NO_THROW(check_statistics(transform_of({0}, {1e-9}), channels));
  EXPECT_NO_THROW(check_statistics(transform_of({-1, 0, 1}, {1, 2, 3}), 3));
  EvalTransform none = transform_of({}, {0});
  none.processor.emplace();
  EXPECT_THROW(check_statistics(none, 3), Error);
}

TEST(Normalizer, RefusesImagesThatItHasNoStatisticsFor) {
  const Normalizer of_colours(transform_of({1, 2, 3}, {1, 2, 3}));
  Values out(2);
  EXPECT_ERROR(testing::error_of([&] {
                 of_colours.apply_into({2, 1, 1, {1, 2}}, out.data());
               }),
               "image transform", "3");
  EXPECT_ERROR(testing::error_of([&] {
                 of_colours.apply_into({2, 1, 3, {1, 2}}, out.data());
               }),
               "image transform", "2");
  EXPECT_THROW(Normalizer(transform_of({1, 2, 3}, {1, 2})), Error);
  EXPECT_THROW(Normalizer(transform_of({1}, {0})), Error);
}

}  // namespace
}  // namespace vitrail::image
