// SPDX-License-Identifier: Apache-2.0
// What COCO's annotations may be: limits, messages, and masks of several polygons.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/sam/instance_datasets_internal.h"

namespace vitrail::sam {
namespace {

namespace fs = std::filesystem;
using testing::error_of;

constexpr const char* kImage = R"({"id": 7, "file_name": "a.png", "width": 5, "height": 3})";

std::unique_ptr<const InstanceDataset> parsed(const std::string& images, const std::string& annotations) {
  return parse_coco_instances(R"({"images": [)" + images + R"(], "annotations": [)" + annotations + "]}", "set.json",
                              "folder");
}

TEST(CocoRefusals, OfAFileNameWhatItLacks) {
  const auto refusal = [](const std::string& text) {
    return error_of([&] { parse_coco_instances(text, "set.json", "folder"); });
  };
  EXPECT_ERROR(refusal("[]"), "set.json", "none");
  EXPECT_ERROR(refusal(R"({"images": 1})"), "set.json", "none");
  EXPECT_ERROR(refusal(R"({"images": []})"), "set.json", "none");
  const auto nested = [](int depth) {
    return R"({"images": [], "annotations": [], "x": )" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  EXPECT_EQ(parse_coco_instances(nested(7), "set.json", "folder")->size(), 0);
  EXPECT_ERROR(refusal(nested(8)), "set.json", "more nesting");
}

TEST(CocoRefusals, OfAnImageNameItAndItsField) {
  const auto refusal = [](const std::string& image) { return error_of([&] { parsed(image, ""); }); };
  EXPECT_EQ(refusal(R"({"file_name": "a"})"),
            R"(set.json: images: expected an object with the integer "id", got {"file_name":"a"})");
  EXPECT_EQ(refusal(R"({"id": 1.5})"), R"(set.json: images: expected an object with the integer "id", got {"id":1.5})");
  EXPECT_EQ(refusal("3"), R"(set.json: images: expected an object with the integer "id", got 3)");
  EXPECT_EQ(refusal(R"({"id": 1, "file_name": 2})"),
            R"(set.json: image 1: expected the text "file_name", got {"file_name":2,"id":1})");
  EXPECT_EQ(refusal(R"({"id": 1, "file_name": "a"})"),
            R"(set.json: image 1: expected an object with the integer "width", got {"file_name":"a","id":1})");
  EXPECT_EQ(
      refusal(R"({"id": 1, "file_name": "a", "width": 4})"),
      R"(set.json: image 1: expected an object with the integer "height", got {"file_name":"a","id":1,"width":4})");
  const auto sized = [](int64_t width, int64_t height) {
    return R"({"id": 1, "file_name": "a", "width": )" + str(width, R"(, "height": )", height, "}");
  };
  for (const auto& [width, height] : {std::pair<int64_t, int64_t>{0, 2}, {2, 0}, {-1, 2}, {1048577, 2}, {2, 1048577}}) {
    EXPECT_EQ(refusal(sized(width, height)),
              str("set.json: image 1: expected a width and a height of pixels, got ", width, "×", height));
  }
  EXPECT_EQ(parsed(sized(1048576, 1), "")->left_out().images, 1);
  EXPECT_EQ(parsed(sized(1, 1048576), "")->left_out().images, 1);
  EXPECT_ERROR(refusal(std::string(kImage) + "," + kImage), "set.json: image 7", "several");
}

TEST(CocoRefusals, OfAnAnnotationNameItAndItsField) {
  const auto refusal = [](const std::string& annotation) { return error_of([&] { parsed(kImage, annotation); }); };
  EXPECT_EQ(refusal("[]"), R"(set.json: annotations: expected an object with the integer "id", got [])");
  EXPECT_EQ(refusal(R"({"id": 3})"),
            R"(set.json: annotation 3: expected an object with the integer "image_id", got {"id":3})");
  EXPECT_EQ(refusal(R"({"id": 3, "image_id": 8})"),
            R"(set.json: annotation 3: expected the id of an image in "image_id", got 8)");
  const auto segmented = [&](const std::string& segmentation) {
    return refusal(R"({"id": 3, "image_id": 7, "segmentation": )" + segmentation + "}");
  };
  EXPECT_ERROR(segmented("[[1, 2, 3, 4, 5, 6], 7]"), "set.json: annotation 3", "7");
  EXPECT_ERROR(segmented("[[1, 2, 3, 4, 5, null]]"), "set.json: annotation 3", "[1,2,3,4,5,null]");
  EXPECT_ERROR(segmented(R"({"counts": [15]})"), "set.json: annotation 3", "none");
  EXPECT_ERROR(segmented(R"({"size": [5, 3], "counts": [15]})"), "set.json: annotation 3", "[5,3]");
  EXPECT_ERROR(segmented(R"({"size": [3, 5]})"), "set.json: annotation 3", "null");
  EXPECT_ERROR(segmented(R"({"size": [3, 5], "counts": 15})"), "set.json: annotation 3", "15");
  for (const char* run : {"-1", "1.5", "4294967296", "\"1\""}) {
    EXPECT_EQ(segmented(str(R"({"size": [3, 5], "counts": [1, )", run, "]}")),
              str("set.json: annotation 3: expected runs of at least 0 pixels, got ", run));
  }
  EXPECT_ERROR(segmented("\"" + std::string(70, 'x') + "\""), "set.json: annotation 3", "none");
}

TEST(CocoRefusals, OfAMaskNameItsAnnotation) {
  const auto refusal = [](const std::string& segmentation) {
    const auto dataset = parsed(kImage, R"({"id": 3, "image_id": 7, "segmentation": )" + segmentation + "}");
    return error_of([&] { dataset->masks(0, 5, 3); });
  };
  EXPECT_ERROR(refusal(R"({"size": [3, 5], "counts": [4294967295]})"), "set.json: annotation 3", "4294967295");
  EXPECT_ERROR(refusal(R"({"size": [3, 5], "counts": [7, 7]})"), "set.json: annotation 3", "14");
  EXPECT_ERROR(refusal(R"({"size": [3, 5], "counts": "7"})"), "set.json: annotation 3", "7");
  const auto dataset = parsed(kImage, R"({"id": 3, "image_id": 7, "segmentation": [[0, 0, 2, 0, 2, 2]]})");
  for (const auto& [width, height] : {std::pair(5, 4), std::pair(4, 3), std::pair(3, 5)}) {
    EXPECT_EQ(error_of([&, w = width, h = height] { dataset->masks(0, w, h); }),
              str("folder/a.png: expected an image of 5×3, as set.json says, got ", width, "×", height));
  }
}

// The line and the far corner cost neither the object nor the image; an annotation of such alone has no mask.
TEST(CocoInstances, ABadPolygonIsLeftOutAndSaid) {
  const testing::Warnings warnings;
  const auto dataset = parsed(kImage, R"(
      {"id": 3, "image_id": 7, "segmentation": [[1, 2, 3, 4], [0, 0, 2, 0, 2, 2, 0, 2], [0, 0, 2, 0, 99, 2]]},
      {"id": 4, "image_id": 7, "segmentation": [[1, 2, 3, 4, 5, 6, 7]]},
      {"id": 5, "image_id": 7, "segmentation": [[3, 0, 4, 0, 4, 3, 3, 3]]})");
  const auto masks = dataset->masks(0, 5, 3);
  ASSERT_EQ(masks.size(), 2u);
  EXPECT_EQ(area(masks[0]), 4);
  EXPECT_EQ(area(masks[1]), 3);
  EXPECT_EQ(dataset->left_out().without_mask, 1);
  EXPECT_EQ(warnings.messages, std::vector<std::string>{"set.json: annotation 3: expected a polygon x, y, … of at "
                                                        "least 3 corners, got 4 numbers (3 such polygons left out)"});
}

// Pixels in two polygons are in the mask once.
TEST(CocoInstances, PolygonsOfAnAnnotationAreUnited) {
  const auto dataset = parsed(kImage, R"({"id": 3, "image_id": 7, "segmentation":
      [[0, 0, 3, 0, 3, 2, 0, 2], [2, 1, 4, 1, 4, 3, 2, 3]]})");
  const auto masks = dataset->masks(0, 5, 3);
  ASSERT_EQ(masks.size(), 1u);
  EXPECT_EQ(decode(masks[0]).pixels, (std::vector<uint8_t>{1, 1, 1, 0, 0,  //
                                                           1, 1, 1, 1, 0,  //
                                                           0, 0, 1, 1, 0}));
}

TEST(CocoInstances, EmptyMasksAreLeftOutAndTheOrderIsKept) {
  const auto dataset = parsed(kImage, R"(
      {"id": 9, "image_id": 7, "segmentation": {"size": [3, 5], "counts": [0, 15]}},
      {"id": 1, "image_id": 7, "segmentation": {"size": [3, 5], "counts": [15]}},
      {"id": 5, "image_id": 7, "segmentation": {"size": [3, 5], "counts": [14, 1]}})");
  const auto masks = dataset->masks(0, 5, 3);
  ASSERT_EQ(masks.size(), 2u);
  EXPECT_EQ(area(masks[0]), 15);
  EXPECT_EQ(masks[1].counts, (std::vector<uint32_t>{14, 1}));
  EXPECT_EQ(masks[1].width, 5);
  EXPECT_EQ(masks[1].height, 3);
}

TEST(CocoInstances, ImagesAreInTheOrderOfTheirIds) {
  const auto image = [](int id, const std::string& name) {
    return str(R"({"id": )", id, R"(, "file_name": ")", name, R"(", "width": 5, "height": 3})");
  };
  const auto mask = [](int id) {
    return str(R"({"id": 1, "image_id": )", id, R"(, "segmentation": [[0, 0, 2, 0, 2, 2]]})");
  };
  const auto dataset =
      parsed(image(9, "nine") + "," + image(2, "two") + "," + image(5, "five"), mask(9) + "," + mask(2));
  ASSERT_EQ(dataset->size(), 2);
  EXPECT_EQ(dataset->path(0), "folder/two");
  EXPECT_EQ(dataset->path(1), "folder/nine");
  EXPECT_EQ(dataset->left_out().images, 1);
  EXPECT_EQ(dataset->left_out().crowds, 0);
  EXPECT_EQ(dataset->left_out().without_mask, 0);
}

// Images are beside the file, in "images" beside it, or in the folder that instances_NAME.json names, in this order.
TEST(CocoInstances, ImagesAreSoughtInThreeFolders) {
  const fs::path root = testing::scratch_folder(), folder = root / "annotations";
  fs::create_directories(folder / "images");
  fs::create_directories(root / "val");
  const std::string text = R"({"images": [)" + std::string(kImage) +
                           R"(], "annotations": [{"id": 3, "image_id": 7, "segmentation": [[0, 0, 2, 0, 2, 2]]}]})";
  for (const char* name : {"instances_val.json", "other_val.json"}) std::ofstream(folder / name) << text;
  const std::string places = (folder / "a.png").string() + ", " + (folder / "images" / "a.png").string();
  const std::string expected = ": expected its images beside it, or in a folder \"images\", got no file " + places;
  EXPECT_EQ(error_of([&] { open_coco_instances(folder / "other_val.json"); }),
            (folder / "other_val.json").string() + expected);
  EXPECT_EQ(error_of([&] { open_coco_instances(folder / "instances_val.json"); }),
            (folder / "instances_val.json").string() + expected + ", " + (folder / ".." / "val" / "a.png").string());
  const auto found = [&] { return open_coco_instances(folder / "instances_val.json")->path(0); };
  std::ofstream(root / "val" / "a.png") << "x";
  EXPECT_EQ(found(), folder / ".." / "val" / "a.png");
  std::ofstream(folder / "images" / "a.png") << "x";
  EXPECT_EQ(found(), folder / "images" / "a.png");
  std::ofstream(folder / "a.png") << "x";
  EXPECT_EQ(found(), folder / "a.png");
}

}  // namespace
}  // namespace vitrail::sam
