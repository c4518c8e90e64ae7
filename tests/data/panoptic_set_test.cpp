// SPDX-License-Identifier: Apache-2.0
// COCO's panoptic annotations, in folders that are written here.
#include "vitrail/data/datasets/panoptic_set.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/image/encode.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json annotations() {
  const auto segment = [](int id, int category, int crowd) {
    return json{{"id", id}, {"category_id", category}, {"iscrowd", crowd}, {"area", 1}};
  };
  return {
      {"images", {{{"id", 9}, {"file_name", "b.jpg"}}, {{"id", 4}, {"file_name", "a.jpg"}}}},
      {"annotations",
       {{{"image_id", 9}, {"file_name", "b.png"}, {"segments_info", {segment(70000, 92, 0), segment(5, 3, 1)}}},
        {{"image_id", 4}, {"file_name", "a.png"}, {"segments_info", json::array()}}}},
      {"categories", {{{"id", 92}, {"name", "banner"}, {"isthing", 0}}, {{"id", 3}, {"name", "car"}, {"isthing", 1}}}}};
}

fs::path folder_with(const json& content, const std::string& name = "val2017") {
  const fs::path folder = testing::scratch_folder();
  fs::create_directories(folder / "annotations");
  std::ofstream(folder / "annotations" / ("panoptic_" + name + ".json")) << content;
  return folder;
}

TEST(PanopticSet, HasTheImagesTheirMapsAndSegments) {
  const fs::path folder = folder_with(annotations());
  EXPECT_TRUE(is_panoptic_set(folder));
  EXPECT_FALSE(is_panoptic_set(folder / "annotations"));
  const PanopticSet set = open_panoptic_set(folder, {"test", "val"});
  EXPECT_EQ(set.name, "val2017");
  ASSERT_EQ(set.categories.size(), 2);
  EXPECT_EQ(set.categories[0].name, "car") << "in the order of the ids";
  EXPECT_TRUE(set.categories[0].thing);
  EXPECT_FALSE(set.categories[1].thing);
  ASSERT_EQ(set.samples.size(), 2);
  EXPECT_EQ(set.samples[0].image, (folder / "val2017" / "a.jpg").string()) << "in the order of the names";
  const PanopticSet::Sample& second = set.samples[1];
  EXPECT_EQ(second.map, (folder / "annotations" / "panoptic_val2017" / "b.png").string());
  ASSERT_EQ(second.segments.size(), 2);
  EXPECT_EQ(second.segments[0].id, 70000);
  EXPECT_EQ(second.segments[0].category, 1);
  EXPECT_FALSE(second.segments[0].crowd);
  EXPECT_EQ(second.segments[1].category, 0);
  EXPECT_TRUE(second.segments[1].crowd);
}

TEST(PanopticSet, IsTheFirstSplitThatThereIs) {
  const fs::path folder = folder_with(annotations());
  std::ofstream(folder / "annotations" / "panoptic_train2017.json") << annotations();
  EXPECT_EQ(open_panoptic_set(folder, {"train"}).name, "train2017");
  EXPECT_EQ(open_panoptic_set(folder, {"test", "val"}).name, "val2017");
  EXPECT_ERROR(testing::error_of([&] { open_panoptic_set(folder, {"test"}); }), (folder / "annotations").string(),
               "train2017, val2017");
  const fs::path single = folder_with(annotations(), "mine");
  EXPECT_EQ(open_panoptic_set(single, {"val"}).name, "mine");
  EXPECT_ERROR(testing::error_of([&] { open_panoptic_set(single / "annotations", {"val"}); }),
               (single / "annotations" / "annotations").string(), "none");
}

TEST(PanopticSet, NamesWhatIsMalformed) {
  const auto expect = [](const std::string& where, const char* value, const std::function<void(json&)>& change) {
    json content = annotations();
    change(content);
    const fs::path folder = folder_with(content);
    const std::string path = (folder / "annotations" / "panoptic_val2017.json").string();
    EXPECT_ERROR(testing::error_of([&] { open_panoptic_set(folder, {"val"}); }), path + where, value);
  };
  const std::string segment = ": annotations[0]: segments_info[1]: ";
  expect(": categories", "none", [](json& c) { c.erase("categories"); });
  expect(": categories[1]: id", "92", [](json& c) { c["categories"][1]["id"] = 92; });
  expect(": categories[0]: name", "7", [](json& c) { c["categories"][0]["name"] = 7; });
  expect(": images", "{}", [](json& c) { c["images"] = json::object(); });
  expect(": annotations[1]: image_id", "5", [](json& c) { c["annotations"][1]["image_id"] = 5; });
  expect(": annotations[1]", "number", [](json& c) { c["annotations"][1] = 1; });
  expect(segment + "category_id", "4", [](json& c) { c["annotations"][0]["segments_info"][1]["category_id"] = 4; });
  expect(segment + "id", "16777216", [](json& c) { c["annotations"][0]["segments_info"][1]["id"] = 1 << 24; });
  expect(segment + "id", "1.5", [](json& c) { c["annotations"][0]["segments_info"][1]["id"] = 1.5; });
  expect(": images[0]: file_name", "../b.jpg", [](json& c) { c["images"][0]["file_name"] = "../b.jpg"; });
  expect("", "none", [](json& c) { c["annotations"] = json::array(); });
}

TEST(PanopticIds, AreThoseOfTheColours) {
  image::Image map = image::make_image(2, 1, 3);
  map.pixels = {5, 0, 0, 0x70, 0x11, 0x01};
  const fs::path file = testing::scratch_folder() / "map.png";
  const std::vector<uint8_t> bytes = image::encode_png(map);
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  EXPECT_EQ(read_panoptic_ids(file.string(), 2, 1), (std::vector<int32_t>{5, 70000}));
  EXPECT_ERROR(testing::error_of([&] { read_panoptic_ids(file.string(), 1, 2); }), file.string(), "2×1");
}

}  // namespace
}  // namespace vitrail::data
