// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run/dataset_identity_internal.h"

#include <chrono>
#include <functional>
#include <set>

#include "tests/train/training_runs.h"
#include "vitrail/data/loader/decoded_cache.h"

namespace vitrail::train {
namespace {

std::string identity_of(const fs::path& path) { return dataset_identity(data::open_dataset(path, {})); }

// Changes a file as some milliseconds later: the clock of a file system may be coarse.
void change_later(const fs::path& file, const std::function<void()>& change) {
  const fs::file_time_type before = fs::last_write_time(file);
  change();
  fs::last_write_time(file, before + std::chrono::milliseconds(5));
}

TEST(DatasetIdentity, IsTheSameForUnchangedImages) {
  const fs::path images = make_images(3) / "train";
  const std::string identity = identity_of(images);
  EXPECT_EQ(identity_of(images), identity);
  EXPECT_EQ(dataset_identity(data::cache_decoded(data::open_dataset(images, {}), 1 << 20)), identity);
  image::read_image(images / "red/00.png");
  EXPECT_EQ(identity_of(images), identity) << "reading changes nothing";
}

TEST(DatasetIdentity, DiffersForEachKindOfChange) {
  const fs::path images = make_images(3) / "train", red = images / "red/00.png", blue = images / "blue/01.png";
  std::set<std::string> seen{identity_of(images)};
  const auto expect_new = [&](const char* what) { EXPECT_TRUE(seen.insert(identity_of(images)).second) << what; };
  std::string bytes = read_text(red);
  ++bytes.back();
  change_later(red, [&] { write_file(red, bytes); });
  expect_new("another content of the same size");
  fs::rename(red, images / "swap");
  fs::rename(blue, red);
  fs::rename(images / "swap", blue);
  expect_new("two files swapped");
  fs::rename(red, images / "red/zz.png");
  expect_new("another name");
  fs::rename(images / "red/zz.png", images / "blue/zz.png");
  expect_new("another class");
  fs::remove(images / "blue/zz.png");
  expect_new("an image less");
}

TEST(DatasetIdentity, KnowsImagesWithoutTimesByTheirContent) {
  struct Numbers : data::Dataset {
    explicit Numbers(uint64_t last) : last_(last) {}
    int64_t size() const override { return 2; }
    std::string path(int64_t i) const override { return str("numbers#", i); }
    int64_t label(int64_t) const override { return 0; }
    image::Image image(int64_t) const override { return {1, 1, 1, {0}}; }
    uint64_t content_hash(int64_t i) const override { return i == 0 ? 1 : last_; }
    uint64_t last_;
  };
  EXPECT_EQ(dataset_identity(std::make_shared<Numbers>(2)), dataset_identity(std::make_shared<Numbers>(2)));
  EXPECT_NE(dataset_identity(std::make_shared<Numbers>(2)), dataset_identity(std::make_shared<Numbers>(3)));
}

// The student of changed images learns from logits of these images, as one without a cache does.
TEST(DatasetIdentity, ATeachersCacheIsOfItsImagesAlone) {
  const fs::path images = make_images(6), runs = testing::scratch_folder(), cache = runs / "cache";
  const std::vector<std::string> settings{"epochs=1", "data.holdout=6", "ema=null"};
  train_to(runs / "teacher", parse_recipe(tiny_recipe(images), "r.json", settings));
  std::vector<std::string> distilled = settings;
  distilled.insert(distilled.end(),
                   {"augment.mixup=0", "loss.distillation={\"teacher\": \"" + (runs / "teacher/model").string() +
                                           "\", \"views\": 2, \"cache\": \"" + cache.string() + "\"}"});
  const Recipe recipe = parse_recipe(tiny_recipe(images), "r.json", distilled);
  const auto num_caches = [&] { return std::distance(fs::directory_iterator(cache), fs::directory_iterator()); };
  train_to(runs / "cold", recipe);
  EXPECT_EQ(num_caches(), 1);
  train_to(runs / "warm", recipe);
  EXPECT_EQ(num_caches(), 1) << "unchanged images share it";
  expect_same_runs(runs / "cold", runs / "warm");
  for (const char* color : {"red", "green", "blue"}) {
    for (const auto& entry : fs::directory_iterator(images / "train" / color)) {
      image::Image image = image::read_image(entry.path());
      for (uint8_t& value : image.pixels) value = static_cast<uint8_t>(255 - value);
      change_later(entry.path(), [&] { image::write_png(entry.path(), image); });
    }
  }
  train_to(runs / "changed", recipe);
  EXPECT_EQ(num_caches(), 2);
  fs::remove_all(cache);
  train_to(runs / "without", recipe);
  expect_same_runs(runs / "without", runs / "changed");
}

// Two columns of a list may name images whose paths below a folder, sizes and times are the same.
TEST(DatasetIdentity, ATeachersCacheIsOfItsColumns) {
  const fs::path images = make_images(6), runs = testing::scratch_folder(), cache = runs / "cache";
  const fs::path set = testing::scratch_folder();
  for (const char* copy : {"near", "far"}) fs::copy(images / "train", set / copy, fs::copy_options::recursive);
  std::ofstream list(set / "list.csv");
  list << "near,far,label\n";
  for (const auto& entry : fs::recursive_directory_iterator(set / "far")) {
    if (!entry.is_regular_file()) continue;
    const fs::path name = fs::relative(entry.path(), set / "far");
    list << "near/" << name.string() << ",far/" << name.string() << "," << name.parent_path().string() << "\n";
    fs::last_write_time(entry.path(), fs::last_write_time(set / "near" / name));
  }
  list.close();
  const std::vector<std::string> settings{"epochs=1", "data.holdout=6", "ema=null"};
  train_to(runs / "teacher", parse_recipe(tiny_recipe(images), "r.json", settings));
  for (const char* column : {"near", "far"}) {
    std::vector<std::string> distilled = settings;
    distilled.insert(distilled.end(), {"data.val=null", str("data.columns=file=", column), "augment.mixup=0",
                                       "loss.distillation={\"teacher\": \"" + (runs / "teacher/model").string() +
                                           "\", \"views\": 2, \"cache\": \"" + cache.string() + "\"}"});
    train_to(runs / column, parse_recipe(tiny_recipe(set / "list.csv"), "r.json", distilled));
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(cache), fs::directory_iterator()), 2);
}

}  // namespace
}  // namespace vitrail::train
