// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run/unreadable_images_internal.h"

#include "tests/support/errors.h"
#include "tests/train/training_fixture.h"

namespace vitrail::train {
namespace {

RunData training_data(const fs::path& images) {
  RunData data;
  data.train = {data::open_dataset(images, {.split = "train"}), {}, "train"};
  data.classes = {"blue", "green", "red"};
  return data;
}

data::Batch batch_of(const std::vector<int64_t>& samples, const std::vector<int64_t>& skipped) {
  data::Batch batch;
  batch.samples = samples;
  batch.skipped = skipped;
  return batch;
}

TEST(UnreadableImages, TheFirstAreNamedOnce) {
  const RunData data = training_data(make_images(4));
  UnreadableImages unreadable;
  const Warnings warnings;
  unreadable.add(data.train, batch_of({0}, {1, 2}));
  unreadable.add(data.train, batch_of({0}, {2, 1, 3}));
  EXPECT_EQ(warnings.messages.size(), 3u);
  unreadable.add(data.train, batch_of({0}, {4, 5, 6, 7, 8}));
  ASSERT_EQ(warnings.messages.size(), 5u);
  EXPECT_TRUE(warnings.messages[0].ends_with("blue/01.png: cannot be read and is skipped")) << warnings.messages[0];
  EXPECT_TRUE(warnings.messages[4].ends_with("green/01.png: cannot be read and is skipped; others are only counted"));
}

TEST(UnreadableImages, LeftOutImagesOfASetAreToldOnce) {
  UnreadableImages unreadable;
  const Warnings warnings;
  const Subset validation{nullptr, {}, "v"}, test{nullptr, {}, "t"};
  unreadable.add_left_out(validation, 0);
  EXPECT_TRUE(warnings.messages.empty());
  for (int epoch = 0; epoch < 3; ++epoch) unreadable.add_left_out(validation, 2);
  unreadable.add_left_out(test, 1);
  EXPECT_EQ(warnings.messages,
            (std::vector<std::string>{"v: 2 images cannot be read and are left out of the accuracies",
                                      "t: 1 image cannot be read and is left out of the accuracies"}));
}

TEST(UnreadableImages, AClassWithoutAnImageThatCanBeReadIsAnError) {
  const fs::path images = make_images(2);
  for (const char* name : {"green/00.png", "green/01.png", "red/00.png"}) write_file(images / "train" / name, "none");
  RunData data = training_data(images);
  DataRecipe recipe;
  recipe.train = "photos";
  UnreadableImages unreadable;
  recipe.unreadable = data::Unreadable::error;
  EXPECT_NO_THROW(unreadable.require_classes(data, recipe));
  recipe.unreadable = data::Unreadable::replace;
  EXPECT_ERROR(error_of([&] { unreadable.require_classes(data, recipe); }), "photos",
               "none of the 2 training images of green");
  data.train.samples = {0, 1, 4, 5};  // without a green one, which is no class of the training images then
  EXPECT_NO_THROW(UnreadableImages().require_classes(data, recipe));
  data.train.samples = {0, 4};
  EXPECT_TRUE(
      contains(error_of([&] { UnreadableImages().require_classes(data, recipe); }), "1 training images of red"));
  data.train.samples = {0, 2};
  UnreadableImages seen;
  seen.add(data.train, batch_of({0, 2}, {}));  // it could be read then
  EXPECT_NO_THROW(seen.require_classes(data, recipe));
}

}  // namespace
}  // namespace vitrail::train
