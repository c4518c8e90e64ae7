// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/label_map_set.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/image/encode.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;
using testing::error_of;

void write_grey(const fs::path& path, int64_t width = 2, int64_t height = 2,
                std::vector<uint8_t> values = {0, 1, 2, 255}) {
  fs::create_directories(path.parent_path());
  image::write_png(path, {width, height, 1, std::move(values)});
}

std::vector<std::string> names_in(const LabelMapSet& set) {
  std::vector<std::string> names;
  for (const auto& sample : set.samples) {
    names.push_back(fs::path(sample.image).filename().string() + " " + fs::path(sample.labels).filename().string());
  }
  return names;
}

TEST(LabelMapSet, PairsImagesAndLabelsOfTheSameName) {
  const fs::path folder = testing::scratch_folder();
  for (const char* name : {"images/b.png", "images/a.png", "images/more/c.png", "labels/a.png", "labels/b.png",
                           "labels/more/c.png", "labels/without_image.png"})
    write_grey(folder / name);
  const LabelMapSet set = open_label_map_set(folder, {"val"});
  EXPECT_EQ(names_in(set), (std::vector<std::string>{"a.png a.png", "b.png b.png", "c.png c.png"}));
  EXPECT_EQ(set.split, "");
  fs::remove(folder / "labels/b.png");
  const std::string missing = (folder / "images/b.png").string();
  EXPECT_EQ(error_of([&] { open_label_map_set(folder, {}); }),
            missing + ": expected its labels " + (folder / "labels/b.png").string() + ", got none");
}

TEST(LabelMapSet, TakesTheFirstSplitThatThereIs) {
  const fs::path folder = testing::scratch_folder();
  for (const char* split : {"training", "validation"}) {
    for (const char* half : {"images", "annotations"})
      write_grey(folder / half / split / (std::string("of_") + split + ".png"));
  }
  EXPECT_EQ(names_in(open_label_map_set(folder, {"test", "val", "validation"})),
            (std::vector<std::string>{"of_validation.png of_validation.png"}));
  EXPECT_EQ(open_label_map_set(folder, {"train", "training"}).split, "training");
  EXPECT_EQ(error_of([&] { open_label_map_set(folder, {"test"}); }),
            (folder / "images").string() + ": expected a folder test, got training, validation");
}

TEST(LabelMapSet, RefusesOtherFolders) {
  const fs::path folder = testing::scratch_folder();
  EXPECT_ERROR(error_of([&] { open_label_map_set(folder, {}); }), folder.string(), "no folder images");
  fs::create_directories(folder / "images");
  EXPECT_ERROR(error_of([&] { open_label_map_set(folder, {}); }), folder.string(), "no folder labels");
  fs::create_directories(folder / "labels");
  EXPECT_ERROR(error_of([&] { open_label_map_set(folder, {}); }), (folder / "images").string(), "none");
}

TEST(LabelMapSet, ReadsLabelsAsTheSetNumbersThem) {
  const fs::path folder = testing::scratch_folder(), file = folder / "a.png";
  write_grey(file);
  const auto read = [&](const LabelMapReading& reading) { return read_label_map(file.string(), 2, 2, reading); };
  using Labels = std::vector<int32_t>;
  EXPECT_EQ(read({}), (Labels{0, 1, 2, 255}));
  EXPECT_EQ(read({.reduce_labels = true}), (Labels{255, 0, 1, 255}));
  EXPECT_EQ(read({.ignored = 2, .reduce_labels = true}), (Labels{2, 0, 2, 254}));
  EXPECT_ERROR(error_of([&] { read_label_map(file.string(), 3, 2, {}); }), file.string(), "2×2");
}

}  // namespace
}  // namespace vitrail::data
