// SPDX-License-Identifier: Apache-2.0
// A folder in a split that has the split's name again, as `unzip train.zip -d train` leaves it.
#include "tests/data/support.h"
#include "vitrail/data/datasets/dataset.h"

namespace vitrail::data {
namespace {

using Names = std::vector<std::string>;

TEST(WrapperFolders, OfASplitsOwnNameAreEntered) {
  const std::pair<const char*, const char*> names[] = {
      {"train", "train"}, {"train", "Training"}, {"Train_Set", "train"}, {"extra", "extra"}};
  for (const auto& [split, folder] : names) {
    const fs::path root = testing::scratch_folder(), top = fs::path(split) / folder;
    place_images(root, {(top / "cat/1.png").string(), (top / "dog/2.png").string(), "test/test/cat/3.png"});
    const bool is_train = std::string(split) != "extra";
    const auto dataset = open_dataset(root, {.split = is_train ? "train" : split});
    EXPECT_EQ(dataset->class_names(), (Names{"cat", "dog"})) << split;
    EXPECT_EQ(dataset->split(), split);
    EXPECT_EQ(dataset->path(1), (root / top / "dog/2.png").string());
    if (is_train) {
      EXPECT_EQ(open_dataset(root, {})->class_names(), Names{"cat"});
    }
  }
}

TEST(WrapperFolders, OfOtherNamesOrWithImagesAreClasses) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"train/test/cat/1.png", "test/test/2.png"});
  EXPECT_EQ(open_dataset(root, {.split = "train"})->class_names(), Names{"test"}) << "another split";
  EXPECT_EQ(open_dataset(root, {.split = "test"})->class_names(), Names{"test"}) << "with an image in it";
  const fs::path named = testing::scratch_folder();
  place_images(named, {"train/train/old/1.png", "train/train/new/2.png"});
  EXPECT_EQ(open_dataset(named, {.split = "train", .labels = {"car", "train"}})->label(0), 1) << "a class of the model";
}

}  // namespace
}  // namespace vitrail::data
