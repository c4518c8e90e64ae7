// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/loader/decoded_cache.h"

#include <set>

#include "tests/data/noise_dataset.h"
#include "tests/data/support.h"

namespace vitrail::data {
namespace {

TEST(DecodedCache, HasTheContentOfTheDataset) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"cat/a.png", "dog/b.png"});
  const std::shared_ptr<const Dataset> dataset = open_dataset(root, {});
  const auto cached = cache_decoded(dataset, 1 << 20);
  EXPECT_EQ(cached->content_size(0), static_cast<int64_t>(fs::file_size(root / "cat/a.png")));
  EXPECT_EQ(cached->content_hash(0), dataset->content_hash(0));
}

TEST(DecodedCache, IsTheSameDataset) {
  const auto cached = cache_decoded(std::make_shared<Noise>(5, std::set<int64_t>{2}), 1 << 20);
  EXPECT_EQ(cached->size(), 5);
  EXPECT_EQ(cached->path(3), "noise/3");
  EXPECT_EQ(cached->label(3), 3);
  EXPECT_THROW(cached->image(2), Error);
  EXPECT_THROW(cached->image(2), Error) << "a failure is not cached";
}

}  // namespace
}  // namespace vitrail::data
