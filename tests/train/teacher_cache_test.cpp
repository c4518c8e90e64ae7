// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/classification/teacher_cache_internal.h"

#include <cstring>

#include "tests/support/errors.h"
#include "tests/support/full_disk.h"
#include "tests/support/golden.h"
#include "tests/train/training_fixture.h"

namespace vitrail::train {
namespace {

TEST(TeacherCache, ReadsWrittenRowsAlsoAfterReopening) {
  const fs::path file = testing::scratch_folder() / "cache";
  const Tensor logits = Tensor::randn({2, 3}, 1);
  {
    TeacherCache cache(file, "recipe", 4, 3);
    EXPECT_FALSE(cache.read({7, 2}, 1, Tensor::zeros({2, 3})));
    cache.write({7, 2}, 1, logits);
  }
  TeacherCache cache(file, "recipe", 4, 3);
  const Tensor cached = Tensor::zeros({2, 3});
  EXPECT_TRUE(cache.read({7, 2}, 1, cached));
  EXPECT_TRUE(testing::close(cached, logits, 0));
  EXPECT_FALSE(cache.read({7, 2}, 2, cached));  // another view
  EXPECT_FALSE(cache.read({2, 6}, 1, cached));  // one of the two samples
  EXPECT_TRUE(testing::close(cached.select(0, 0), logits.select(0, 1), 0));
}

TEST(TeacherCache, TheMeanIsOverTheCachedViews) {
  TeacherCache cache(testing::scratch_folder() / "cache", "recipe", 3, 2);
  const Tensor logits = Tensor::from<float>({3, 2}, {1, 2, 4, 0, 7, 6});
  cache.write({5}, 0, logits.narrow(0, 0, 1));
  cache.write({5}, 2, logits.narrow(0, 1, 1));
  cache.write({8}, 1, logits.narrow(0, 2, 1));
  const Tensor mean = Tensor::zeros({2, 2});
  EXPECT_TRUE(cache.read_mean({5, 8}, mean));
  EXPECT_TRUE(testing::close(mean, Tensor::from<float>({2, 2}, {2.5f, 1, 7, 6}), 0));
  EXPECT_FALSE(cache.read_mean({5, 6}, mean));  // sample 6 has no cached view
}

TEST(TeacherCache, TruncatesAFileWithAnotherIdentityOrFormat) {
  const fs::path file = testing::scratch_folder() / "cache";
  const Tensor logits = Tensor::randn({1, 3}, 1);
  TeacherCache(file, "recipe", 4, 3).write({0}, 0, logits);
  EXPECT_FALSE(TeacherCache(file, "other", 4, 3).read({0}, 0, logits));
  write_file(file, "no cache");
  EXPECT_FALSE(TeacherCache(file, "recipe", 4, 3).read({0}, 0, logits));
}

// A process that is killed can leave a partial row.
TEST(TeacherCache, APartialRowIsNotRead) {
  const fs::path file = testing::scratch_folder() / "cache";
  const Tensor logits = Tensor::randn({1, 3}, 1);
  TeacherCache(file, "recipe", 1, 3).write({5}, 0, logits);
  fs::resize_file(file, fs::file_size(file) - 2);
  EXPECT_FALSE(TeacherCache(file, "recipe", 1, 3).read({5}, 0, logits));
}

TEST(TeacherCache, ErrorsNameTheFile) {
  EXPECT_TRUE(contains(error_of([] { TeacherCache("/nowhere/cache", "", 1, 2); }), "/nowhere/cache"));
  TeacherCache cache(testing::scratch_folder() / "cache", "recipe", 2, 3);
  EXPECT_THROW(cache.read({0}, 2, Tensor::zeros({1, 3})), Error);
  EXPECT_TRUE(contains(error_of([] { TeacherCache("/dev/full", "", 1, 2); }), "/dev/full"));
}

// A header of 16 bytes, then for each sample and view the logits and a mark.
TEST(TeacherCache, ARowIsAtThePlaceOfItsSampleAndView) {
  const fs::path file = testing::scratch_folder() / "cache";
  const auto float_at = [&](size_t index) {
    float value = 0;
    std::memcpy(&value, read_text(file).data() + 16 + 4 * index, sizeof value);
    return value;
  };
  TeacherCache cache(file, "recipe", 2, 3);
  EXPECT_EQ(fs::file_size(file), 16u);
  EXPECT_TRUE(read_text(file).starts_with("vteache1"));
  cache.write({5, 1}, 1, Tensor::from<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(fs::file_size(file), 16u + 12 * 4 * 4);  // six samples of two views of four values
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(float_at((5 * 2 + 1) * 4 + i), i == 3 ? 1.0F : static_cast<float>(i + 1));
    EXPECT_EQ(float_at((1 * 2 + 1) * 4 + i), i == 3 ? 1.0F : static_cast<float>(i + 4));
    EXPECT_EQ(float_at((1 * 2 + 0) * 4 + i), 0.0F);
  }
  const Tensor kept = Tensor::full({2, 3}, 9);
  EXPECT_FALSE(cache.read({0, 1}, 1, kept));
  EXPECT_EQ(kept.data<float>()[0], 9) << "a row that is not there stays as it is";
  EXPECT_EQ(kept.data<float>()[3], 4);
  EXPECT_TRUE(cache.read({}, 0, Tensor::zeros({0, 3})));
  EXPECT_TRUE(cache.read_mean({}, Tensor::zeros({0, 3})));
}

TEST(TeacherCache, OfOtherViewsOrClassesIsAnotherOne) {
  const fs::path file = testing::scratch_folder() / "cache";
  const Tensor logits = Tensor::randn({1, 3}, 1);
  for (const auto& [views, classes] : {std::pair<int64_t, int64_t>{3, 3}, {2, 2}}) {
    TeacherCache(file, "recipe", 2, 3).write({0}, 0, logits);
    EXPECT_TRUE(TeacherCache(file, "recipe", 2, 3).read({0}, 0, Tensor::zeros({1, 3})));
    EXPECT_FALSE(TeacherCache(file, "recipe", views, classes).read({0}, 0, Tensor::zeros({1, classes})));
    EXPECT_FALSE(TeacherCache(file, "recipe", 2, 3).read({0}, 0, Tensor::zeros({1, 3}))) << "it was truncated";
  }
}

TEST(TeacherCache, ErrorsSayWhatFailed) {
  const fs::path file = testing::scratch_folder() / "cache";
  TeacherCache cache(file, "recipe", 2, 3);
  EXPECT_ERROR(error_of([&] { cache.read({0}, 2, Tensor::zeros({1, 3})); }), "view", "2");
  EXPECT_ERROR(error_of([&] { cache.write({0}, -1, Tensor::zeros({1, 3})); }), "view", "-1");
  EXPECT_TRUE(
      error_of([] { TeacherCache("/nowhere/cache", "", 1, 2); }).starts_with("/nowhere/cache: cannot be opened: "));
  std::string message;
  {
    const testing::FullDisk full(20);
    message = error_of([&] { cache.write({0}, 0, Tensor::zeros({1, 3})); });
  }
  EXPECT_TRUE(message.starts_with(file.string() + ": cannot be written: ")) << message;
  EXPECT_FALSE(cache.read({0}, 0, Tensor::zeros({1, 3})));
  fs::create_symlink(file, file.parent_path() / "link");
  EXPECT_TRUE(contains(error_of([&] { TeacherCache(file.parent_path() / "link", "recipe", 2, 3); }), "link"));
}

}  // namespace
}  // namespace vitrail::train
