// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/semantic/semantic_data_internal.h"

#include <algorithm>
#include <set>

#include "tests/support/errors.h"
#include "tests/train/semantic_fixture.h"

namespace vitrail::train {
namespace {

using Names = std::vector<std::string>;

SemanticData map_data_of(const fs::path& maps, const std::vector<std::string>& settings = {}) {
  return open_semantic_data(semantic_recipe(maps, settings));
}

TEST(SemanticData, SplitsAndClassesAreTheDatasets) {
  const fs::path maps = make_maps(6, 3);
  EXPECT_TRUE(is_map_dataset(maps));
  EXPECT_EQ(semantic_splits(maps), (Names{"train", "val"}));
  const SemanticData data = map_data_of(maps, {"data.test=" + maps.string(), "data.test_split=train"});
  EXPECT_EQ(data.samples, (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
  for (const auto& [split, size] : {std::pair{Split::training, 6}, {Split::validation, 3}, {Split::test, 6}}) {
    EXPECT_EQ(data.size(split), size);
    EXPECT_EQ(data.of(split)->size(), size);
    EXPECT_EQ(data.name(split), std::to_string(size) + " images of " + maps.string());
  }
  EXPECT_EQ(data.classes, (Names{"wall", "lamp", "hole"}));
  EXPECT_EQ(data.train->labels(0, 32, 24).size(), 768u);
  EXPECT_FALSE(is_map_dataset(maps / "images"));
  EXPECT_FALSE(is_map_dataset(make_images(1, 1)));
}

TEST(SemanticData, WithoutNamesClassesAreNumbers) {
  const fs::path maps = make_maps(2, 1);
  fs::remove(maps / "classes.txt");
  EXPECT_EQ(map_data_of(maps).classes, (Names{"0", "1", "2"}));
  EXPECT_ERROR(error_of([&] { map_data_of(maps, {"semantic.ignored=2"}); }), maps.string(),
               "more");  // 255 is a label then
  EXPECT_EQ(map_data_of(maps, {"semantic.reduce_labels=true"}).classes, (Names{"0", "1"}));
  EXPECT_EQ(map_data_of(maps, {R"(semantic.classes=["a", "b", "c"])"}).classes, (Names{"a", "b", "c"}));
  write_file(maps / "classes.txt", "only\n\n");
  EXPECT_ERROR(error_of([&] { map_data_of(maps); }), maps.string(), "1 class");
}

TEST(SemanticData, ZeroMayStandForNoClass) {
  const fs::path maps = make_maps(1, 1);
  const std::vector<int32_t> plain = map_data_of(maps).train->labels(0, 32, 24),
                             reduced = map_data_of(maps, {"semantic.reduce_labels=true"}).train->labels(0, 32, 24);
  for (size_t i = 0; i < plain.size(); ++i)
    ASSERT_EQ(reduced[i], plain[i] == 0 || plain[i] == 255 ? 255 : plain[i] - 1) << i;
}

TEST(SemanticData, HeldOutImagesAreNotTrainedOn) {
  const fs::path maps = make_maps(12, 1);
  std::set<std::string> chosen;
  for (const char* seed : {"1", "2", "3"}) {
    const SemanticData data =
        map_data_of(maps, {"data.val=\"\"", "data.holdout=4", std::string("data.holdout_seed=") + seed});
    ASSERT_EQ(data.validation->size(), 4);
    std::set<std::string> all, held_out;
    for (const int64_t sample : data.samples) all.insert(data.train->path(sample).string());
    for (int64_t i = 0; i < 4; ++i) {
      const std::string path = data.validation->path(i).string();
      EXPECT_TRUE(all.insert(path).second) << path;
      EXPECT_EQ(data.validation->labels_path(i).filename(), data.validation->path(i).filename());
      held_out.insert(path);
    }
    EXPECT_EQ(all.size(), 12u);
    EXPECT_EQ(data.validation_name, "4 images held out of " + maps.string());
    chosen.insert(::testing::PrintToString(held_out));
  }
  EXPECT_GT(chosen.size(), 1u);
  EXPECT_GT(map_data_of(maps, {"data.val=\"\""}).validation->size(), 0);
  EXPECT_EQ(map_data_of(maps, {"data.val=\"\"", "data.holdout=0"}).validation, nullptr);
  EXPECT_ERROR(error_of([&] { map_data_of(maps, {"data.val=\"\"", "data.holdout=12"}); }), "data.holdout", "12");
}

// A rectangle of category 7 ("cat"), and a square of 3 ("ant") on its corner, in 8×6 pixels.
fs::path make_coco() {
  const fs::path root = testing::scratch_folder();
  for (const char* split : {"train", "val"}) {
    fs::create_directories(root / split);
    image::write_png(root / split / "a.png", image::make_image(8, 6, 3));
    fs::create_directories(root / "annotations");
    write_file(root / "annotations" / (std::string("instances_") + split + ".json"),
               R"({"images": [{"id": 1, "file_name": "a.png", "width": 8, "height": 6}],
                   "categories": [{"id": 7, "name": "cat"}, {"id": 3, "name": "ant"}],
                   "annotations": [
                     {"id": 1, "image_id": 1, "category_id": 3, "segmentation": [[0, 0, 2, 0, 2, 2, 0, 2]]},
                     {"id": 2, "image_id": 1, "category_id": 7, "segmentation": [[0, 0, 4, 0, 4, 6, 0, 6]]}]})");
  }
  return root;
}

TEST(SemanticData, PolygonsOfCocoAreMaps) {
  const fs::path coco = make_coco();
  EXPECT_TRUE(is_map_dataset(coco));
  EXPECT_EQ(semantic_splits(coco), (Names{"train", "val"}));
  const SemanticData data = map_data_of(coco);
  EXPECT_EQ(data.classes, (Names{"background", "ant", "cat"}));
  const std::vector<int32_t> labels = data.train->labels(0, 8, 6);
  for (int64_t y = 0; y < 6; ++y) {
    for (int64_t x = 0; x < 8; ++x)
      EXPECT_EQ(labels[static_cast<size_t>(8 * y + x)], x < 2 && y < 2 ? 1 : x < 4 ? 2 : 0) << x << ", " << y;
  }
  EXPECT_EQ(data.validation->path(0), coco / "annotations/../val/a.png");
  const fs::path file = coco / "annotations/instances_train.json";
  EXPECT_EQ(map_data_of(file).train->labels(0, 8, 6), labels);
  std::string text = read_text(file);
  text.replace(text.find("\"category_id\": 3"), 16, "\"category_id\": 4");
  write_file(file, text);
  EXPECT_ERROR(error_of([&] { map_data_of(coco).train->labels(0, 8, 6); }),
               (coco / "annotations/instances_train.json").string() + ": annotation 1", "4");
  text.erase(text.find("\"categories\""), text.find("\"annotations\"") - text.find("\"categories\""));
  write_file(file, text);
  EXPECT_ERROR(error_of([&] { map_data_of(coco); }), (coco / "annotations/instances_train.json").string(), "none");
}

}  // namespace
}  // namespace vitrail::train
