// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/segmentation/segment_data_internal.h"

#include <algorithm>
#include <set>

#include "tests/support/errors.h"
#include "tests/train/segment_fixture.h"

namespace vitrail::train {
namespace {

DataRecipe data_of(const fs::path& instances, const std::vector<std::string>& settings) {
  return parse_recipe(tiny_segment_recipe(instances), "r.json", settings).data;
}

TEST(SegmentData, SplitsAreTheRecipes) {
  const fs::path instances = make_instances(6, 3);
  const SegmentData data =
      open_segment_data(data_of(instances, {"data.test=" + instances.string(), "data.test_split=val"}));
  EXPECT_EQ(data.samples, (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(data.train->size(), 6);
  EXPECT_EQ(data.validation->size(), 3);
  EXPECT_EQ(data.test->size(), 3);
  EXPECT_EQ(open_segment_data(data_of(instances, {"data.holdout=0"})).validation->size(), 3);
}

TEST(SegmentData, HeldOutImagesAreNotTrainedOn) {
  const fs::path instances = make_instances(12, 1);
  std::set<std::string> chosen;
  for (const char* seed : {"1", "2", "3"}) {
    const DataRecipe recipe =
        data_of(instances, {"data.val=\"\"", "data.holdout=4", std::string("data.holdout_seed=") + seed});
    const SegmentData data = open_segment_data(recipe);
    ASSERT_EQ(data.validation->size(), 4);
    ASSERT_EQ(data.samples.size(), 8u);
    EXPECT_TRUE(std::ranges::is_sorted(data.samples));
    std::set<std::string> all, held_out;
    for (const int64_t sample : data.samples) all.insert(data.train->path(sample).string());
    for (int64_t i = 0; i < 4; ++i) {
      const std::string path = data.validation->path(i).string();
      EXPECT_TRUE(all.insert(path).second) << path;
      held_out.insert(path);
      EXPECT_EQ(data.validation->masks(i, 32, 24).size(), 2u);
    }
    EXPECT_EQ(all.size(), 12u);
    for (int64_t i = 1; i < 4; ++i) EXPECT_LT(data.validation->path(i - 1), data.validation->path(i));
    EXPECT_EQ(data.validation_name, "4 images held out of " + instances.string());
    EXPECT_TRUE(data.train_name.starts_with("8 of ")) << data.train_name;
    chosen.insert(::testing::PrintToString(held_out));
  }
  EXPECT_GT(chosen.size(), 1u);
}

TEST(SegmentData, SomeImagesAreHeldOutUnlessTheRecipeSaysNone) {
  const fs::path instances = make_instances(12, 1);
  EXPECT_GT(open_segment_data(data_of(instances, {"data.val=\"\""})).validation->size(), 0);
  const SegmentData all = open_segment_data(data_of(instances, {"data.val=\"\"", "data.holdout=0"}));
  EXPECT_EQ(all.validation, nullptr);
  EXPECT_EQ(all.samples.size(), 12u);
}

TEST(SegmentData, HeldOutImagesThatCannotBeAreErrors) {
  const fs::path instances = make_instances(4, 1);
  const auto refusal = [&](const std::vector<std::string>& settings) {
    return error_of([&] { open_segment_data(data_of(instances, settings)); });
  };
  EXPECT_TRUE(contains(refusal({"data.holdout=2"}), "data.holdout: expected 0 together with data.val, got 2"));
  EXPECT_TRUE(contains(refusal({"data.val=\"\"", "data.holdout=4"}), "fewer than the 4 training images, got 4"));
  EXPECT_EQ(open_segment_data(data_of(instances, {"data.val=\"\"", "data.holdout=3"})).samples.size(), 1u);
}

TEST(SegmentData, SetsHaveTheNamesThatMessagesShow) {
  const fs::path instances = make_instances(6, 3);
  const SegmentData data = open_segment_data(data_of(instances, {}));
  EXPECT_EQ(data.train_name, sam::summary(*data.train, instances.string()));
  EXPECT_EQ(data.validation_name, sam::summary(*data.validation, instances.string()));
  EXPECT_NE(data.train_name, data.validation_name);
  EXPECT_EQ(data.test, nullptr);
  EXPECT_EQ(data.test_name, "");
  const SegmentData held_out = open_segment_data(data_of(instances, {"data.val=\"\"", "data.holdout=2"}));
  EXPECT_EQ(held_out.train_name, "4 of " + sam::summary(*data.train, instances.string()));
  EXPECT_EQ(held_out.validation_name, "2 images held out of " + instances.string());
  EXPECT_EQ(held_out.validation->masks(0, 32, 24).size(), 2u);
  const SegmentData by_default = open_segment_data(data_of(instances, {"data.val=\"\""}));
  EXPECT_EQ(by_default.validation->size(), 2) << "a third of six";
  EXPECT_ERROR(error_of([&] {
                 open_segment_data(data_of(instances, {"data.val=\"\"", "data.holdout=7"}));
               }),
               "data.holdout", "7");
}

TEST(SegmentData, ASplitMayBeAskedFor) {
  const fs::path instances = make_instances(6, 3);
  fs::rename(instances / "val", instances / "extra");
  const SegmentData data =
      open_segment_data(data_of(instances, {"data.train_split=extra", "data.val_split=train", "data.holdout=0"}));
  EXPECT_EQ(data.train->size(), 3);
  EXPECT_EQ(data.validation->size(), 6);
}

}  // namespace
}  // namespace vitrail::train
