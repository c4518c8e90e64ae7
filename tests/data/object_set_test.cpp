// SPDX-License-Identifier: Apache-2.0
// Sets of objects in each of their forms, in folders that are written here.  All have the same two images of 40×20.
#include "vitrail/data/objects/object_set.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/data/support.h"
#include "tests/support/errors.h"
#include "vitrail/image/encode.h"

namespace vitrail::data {
namespace {

using nlohmann::json;
using Box = std::array<double, 4>;

constexpr int64_t kWidth = 40, kHeight = 20;

void write_image(const fs::path& path) {
  const std::vector<uint8_t> bytes = image::encode_png(image::make_image(kWidth, kHeight, 3));
  write_file(path, std::string(bytes.begin(), bytes.end()));
}

// A cat in a.png, a dog and a cat in b.png, nothing in c.png.
const Box kCat{2, 4, 12, 14}, kDog{20, 5, 30, 15}, kSmallCat{0, 0, 4, 2};

json coco() {
  const auto object = [](int id, int image, int category, const Box& box) {
    return json{{"id", id},
                {"image_id", image},
                {"category_id", category},
                {"bbox", {box[0], box[1], box[2] - box[0], box[3] - box[1]}},
                {"area", 7.5},
                {"iscrowd", 0}};
  };
  const auto image = [](int id, const char* name) {
    return json{{"id", id}, {"file_name", name}, {"width", kWidth}, {"height", kHeight}};
  };
  return {{"images", {image(9, "b.png"), image(4, "a.png"), image(5, "c.png")}},
          {"annotations", {object(1, 9, 18, kDog), object(2, 4, 3, kCat), object(3, 9, 3, kSmallCat)}},
          {"categories", {{{"id", 18}, {"name", "dog"}}, {{"id", 3}, {"name", "cat"}}}}};
}

fs::path coco_folder(const json& content) {
  const fs::path folder = testing::scratch_folder();
  for (const char* name : {"a.png", "b.png", "c.png"}) write_image(folder / "val2017" / name);
  write_file(folder / "annotations" / "instances_val2017.json", content.dump());
  return folder;
}

std::string coco_file(const fs::path& folder) { return (folder / "annotations" / "instances_val2017.json").string(); }

constexpr const char* kYoloData =
    "# a set\npath: .\ntrain: images/train\nval: images/val  # ours\n\nnames: [cat, 'dog']\n";

fs::path yolo_folder(const std::string& data = kYoloData, const std::string& labels = "0 0.175 0.45 0.25 0.5\n") {
  const fs::path folder = testing::scratch_folder();
  write_file(folder / "data.yaml", data);
  for (const char* name : {"a.png", "b.png", "c.png"}) write_image(folder / "images" / "val" / name);
  write_image(folder / "images" / "train" / "t.png");
  write_file(folder / "labels" / "train" / "t.txt", "1 0.5 0.5 1 1\n");
  write_file(folder / "labels" / "val" / "a.txt", labels);
  write_file(folder / "labels" / "val" / "b.txt", "1 0.625 0.5 0.25 0.5\r\n0 0.05 0.05 0.1 0.1\r\n");
  return folder;
}

std::string voc_object(const std::string& name, const Box& box, const std::string& more = "") {
  return str("<object><name>", name, "</name>", more, "<bndbox><xmin>", box[0] + 1, "</xmin><ymin>", box[1] + 1,
             "</ymin><xmax>", box[2], "</xmax><ymax>", box[3], "</ymax></bndbox></object>");
}

std::string voc(const std::string& objects) {
  return "<?xml version=\"1.0\"?>\n<!-- a & b --><annotation verified=\"no\">\n <filename>x.png</filename>\n "
         "<size><width>40</width><height>20</height><depth>3</depth></size><segmented/>" +
         objects + "</annotation>\n";
}

fs::path voc_folder(const std::string& cat = voc_object("cat", kCat)) {
  const fs::path folder = testing::scratch_folder();
  for (const char* name : {"a.png", "b.png", "c.png", "t.png"}) write_image(folder / "JPEGImages" / name);
  write_file(folder / "Annotations" / "a.xml", voc(cat));
  write_file(folder / "Annotations" / "b.xml", voc(voc_object("dog", kDog) + voc_object("cat", kSmallCat)));
  write_file(folder / "Annotations" / "c.xml", voc(""));
  write_file(folder / "Annotations" / "t.xml", voc(voc_object("zebra", kDog, "<difficult>1</difficult>")));
  write_file(folder / "ImageSets" / "Main" / "val.txt", "a\nb\nc\n");
  write_file(folder / "ImageSets" / "Main" / "train.txt", "t\n");
  write_file(folder / "ImageSets" / "Main" / "cat_train.txt", "t -1\n");
  return folder;
}

fs::path csv_folder(
    const std::string& rows = "a.png,2,4,12,14,cat\nb.png,20,5,30,15,dog\nb.png,0,0,4,2,cat\nc.png,,,,,\n") {
  const fs::path folder = testing::scratch_folder();
  for (const char* name : {"a.png", "b.png", "c.png"}) write_image(folder / "images" / name);
  write_file(folder / "annotations.csv", "image,x1,y1,x2,y2,label\n" + rows);
  return folder;
}

void expect_box(const LabelledObject& object, const Box& box) {
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(object.box[i], box[i], 1e-9) << i;
}

// The images and objects that all forms have; `zebra`: a class of another split.
void expect_set(const ObjectSet& set, const char* form, bool zebra = false) {
  EXPECT_EQ(set.form, form);
  EXPECT_EQ(set.class_names,
            (zebra ? std::vector<std::string>{"cat", "dog", "zebra"} : std::vector<std::string>{"cat", "dog"}));
  ASSERT_EQ(set.images.size(), 3U);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(fs::path(set.images[i].path).filename(), std::string(1, static_cast<char>('a' + i)) + ".png");
  const auto a = objects_of(set, 0, kWidth, kHeight), b = objects_of(set, 1, kWidth, kHeight);
  ASSERT_EQ(a.size(), 1U);
  ASSERT_EQ(b.size(), 2U);
  expect_box(a[0], kCat);
  expect_box(b[0], kDog);
  expect_box(b[1], kSmallCat);
  EXPECT_EQ(a[0].index, 0);
  EXPECT_EQ(b[0].index, 1);
  EXPECT_EQ(b[1].index, 0);
  if (set.form != "COCO") {
    EXPECT_NEAR(b[1].area, 8, 1e-9);
  }
  EXPECT_TRUE(objects_of(set, 2, kWidth, kHeight).empty()) << "an image without objects";
}

TEST(ObjectSet, ReadsCoco) {
  const fs::path folder = coco_folder(coco());
  const ObjectSet set = open_object_set(folder);
  expect_set(set, "COCO");
  EXPECT_EQ(set.split, "val2017");
  EXPECT_EQ(set.category_ids, (std::vector<int64_t>{3, 18})) << "in the order of the ids";
  EXPECT_EQ(set.images[1].id, 9);
  EXPECT_EQ(set.images[1].objects[0].id, 1);
  EXPECT_EQ(set.images[1].objects[0].area, 7.5) << "that of the mask";
  EXPECT_EQ(open_object_set(folder / "annotations" / "instances_val2017.json").split, "");
  EXPECT_EQ(summary(set, "SET"), "3 images of SET/val2017 (COCO): 3 objects of 2 classes");
}

TEST(ObjectSet, ReadsMasksCrowdsAndKeyPointsOfCoco) {
  json content = coco();
  content["annotations"][0]["segmentation"] = {{1, 2, 3, 4, 5, 6}, {7, 8, 9, 10, 11, 12}};
  content["annotations"][1]["segmentation"] = {{"size", {20, 40}}, {"counts", {100, 700}}};
  content["annotations"][1]["iscrowd"] = 1;
  content["annotations"][2]["segmentation"] = {{"size", {20, 40}}, {"counts", "4h9"}};
  content["annotations"][2]["keypoints"] = {3, 4, 2, 0, 0, 0};
  content["categories"][1]["keypoints"] = {"nose", "tail"};
  const ObjectSet set = open_object_set(coco_folder(content));
  EXPECT_EQ(set.keypoint_names, (std::vector<std::string>{"nose", "tail"}));
  const LabelledObject &crowd = set.images[0].objects[0], &dog = set.images[1].objects[0],
                       &cat = set.images[1].objects[1];
  EXPECT_TRUE(crowd.crowd);
  EXPECT_EQ(crowd.outline.runs, (std::vector<uint32_t>{100, 700}));
  EXPECT_FALSE(dog.crowd);
  ASSERT_EQ(dog.outline.polygons.size(), 2U);
  EXPECT_EQ(dog.outline.polygons[1], (std::vector<double>{7, 8, 9, 10, 11, 12}));
  EXPECT_EQ(cat.outline.coco_runs, "4h9");
  ASSERT_EQ(cat.keypoints.size(), 2U);
  EXPECT_EQ(cat.keypoints[0].x, 3);
  EXPECT_EQ(cat.keypoints[0].visibility, 2);
}

TEST(ObjectSet, ReadsCocoBesideTheImagesOfEachSplit) {
  const fs::path folder = testing::scratch_folder();
  for (const char* split : {"train", "valid"}) {
    write_file(folder / split / "_annotations.coco.json", coco().dump());
    for (const char* name : {"a.png", "b.png", "c.png"}) write_image(folder / split / name);
  }
  EXPECT_EQ(object_set_splits(folder), (std::vector<std::string>{"train", "valid"}));
  expect_set(open_object_set(folder, {.split = "val"}), "COCO");
  EXPECT_EQ(open_object_set(folder, {.split = "train"}).images[0].path, (folder / "train" / "a.png").string());
  EXPECT_ERROR(error_of([&] { open_object_set(folder, {.split = "test"}); }), folder.string(),
               "these splits: train, val");
}

TEST(ObjectSet, ReadsYolo) {
  const fs::path folder = yolo_folder();
  EXPECT_EQ(object_set_splits(folder), (std::vector<std::string>{"train", "val"}));
  const ObjectSet set = open_object_set(folder);
  expect_set(set, "YOLO");
  EXPECT_EQ(set.images[0].width, 0) << "the files do not say";
  EXPECT_EQ(objects_of(set, 0, 80, 20)[0].box[2], 24) << "in fractions of any size";
  expect_set(open_object_set(folder / "data.yaml"), "YOLO");
}

TEST(ObjectSet, ReadsNamesAndListsOfYolo) {
  const std::string list = "train: train.txt\nnames:\n  1: \"dog\"\n  0: cat\n";
  const fs::path folder = yolo_folder("nc: 2\ntest: [images/val]\n" + list);
  write_file(folder / "train.txt", "./images/train/t.png\n");
  expect_set(open_object_set(folder, {.split = "test"}), "YOLO");
  EXPECT_EQ(open_object_set(folder, {.split = "train"}).images.size(), 1U);
  // Roboflow's paths lead out of the folder.
  expect_set(open_object_set(yolo_folder("val: ../images/val\nnc: 2\nnames:\n- cat\n- dog\n")), "YOLO");
}

TEST(ObjectSet, ReadsPolygonsAndKeyPointsOfYolo) {
  const ObjectSet masks = open_object_set(yolo_folder(kYoloData, "0 0.1 0.2 0.5 0.2 0.5 0.6\n"));
  const LabelledObject object = objects_of(masks, 0, kWidth, kHeight)[0];
  expect_box(object, {4, 4, 20, 12});
  ASSERT_EQ(object.outline.polygons.size(), 1U);
  EXPECT_NEAR(object.outline.polygons[0][5], 12, 1e-9);
  const fs::path folder =
      yolo_folder(std::string(kYoloData) + "kpt_shape: [2, 2]\n", "0 0.175 0.45 0.25 0.5 0.5 0.25 0 0\n");
  write_file(folder / "labels" / "val" / "b.txt", "");
  const LabelledObject person = objects_of(open_object_set(folder), 0, kWidth, kHeight)[0];
  expect_box(person, kCat);
  ASSERT_EQ(person.keypoints.size(), 2U);
  EXPECT_EQ(person.keypoints[0].y, 5);
  EXPECT_EQ(person.keypoints[0].visibility, 2);
  EXPECT_EQ(person.keypoints[1].visibility, 0);
}

TEST(ObjectSet, ReadsPascalVoc) {
  const fs::path folder = voc_folder();
  EXPECT_EQ(object_set_splits(folder), (std::vector<std::string>{"train", "val"}));
  expect_set(open_object_set(folder), "Pascal VOC", true);
  const ObjectSet train = open_object_set(folder, {.split = "train"});
  EXPECT_EQ(train.class_names.size(), 3U) << "those of all splits";
  EXPECT_EQ(train.images[0].objects[0].index, 2);
  EXPECT_TRUE(train.images[0].objects[0].difficult);
  const ObjectSet escaped = open_object_set(voc_folder(voc_object("<![CDATA[a<b]]>&amp;&#233;&#x4e;", kCat)));
  EXPECT_EQ(escaped.class_names[0], "a<b&\xC3\xA9N");
}

TEST(ObjectSet, ReadsPascalVocBesideTheImagesOfEachSplit) {
  const fs::path folder = testing::scratch_folder();
  write_image(folder / "train" / "a.png");
  write_file(folder / "train" / "a.xml", voc(voc_object("cat", kCat)));
  write_image(folder / "test" / "b.png");
  write_file(folder / "test" / "b.xml", voc(voc_object("dog", kDog)));
  const ObjectSet set = open_object_set(folder);
  EXPECT_EQ(set.split, "test");
  EXPECT_EQ(set.images.at(0).objects.at(0).index, 1);
}

TEST(ObjectSet, ReadsCsv) {
  expect_set(open_object_set(csv_folder()), "CSV");
  const fs::path folder = testing::scratch_folder();
  write_image(folder / "train" / "a.png");
  write_image(folder / "valid" / "b.png");
  const std::string header = "filename,width,height,class,xmin,ymin,xmax,ymax\n";
  write_file(folder / "train" / "_annotations.csv", header + "a.png,40,20,cat,2,4,12,14\n");
  write_file(folder / "valid" / "_annotations.csv", header + "b.png,40,20,dog,20,5,30,15\n");
  const ObjectSet set = open_object_set(folder);
  EXPECT_EQ(set.split, "valid");
  EXPECT_EQ(set.images.at(0).height, kHeight);
  EXPECT_EQ(set.images.at(0).objects.at(0).index, 1) << "classes of all splits";
}

TEST(ObjectSet, CutsBoxesAndCountsThoseThatAreLeftOut) {
  json content = coco();
  content["annotations"][0]["bbox"] = {-3, 15, 10, 10};
  content["annotations"][1]["bbox"] = {4, 4, 0, 3};
  content["annotations"][2]["bbox"] = {50, 4, 5, 3};
  const fs::path folder = coco_folder(content);
  const Warnings warnings;
  const ObjectSet set = open_object_set(folder);
  ASSERT_EQ(warnings.messages.size(), 1U);
  EXPECT_ERROR(warnings.messages[0], coco_file(folder) + ": annotation 2", "[4, 4, 4, 7] (2 such objects left out)");
  EXPECT_EQ(set.object_count(), 1);
  expect_box(set.images[1].objects[0], {0, 15, 7, 20});
  const ObjectSet all = open_object_set(folder, {.cut = false});
  EXPECT_EQ(all.object_count(), 3) << "as COCO's evaluation takes them";
  expect_box(all.images[1].objects[0], {-3, 15, 7, 25});
}

TEST(ObjectSet, RefusesABoxOutsideOfAnImageWhoseSizeTheFilesDoNotTell) {
  const ObjectSet set = open_object_set(csv_folder("a.png,50,4,60,14,cat\n"));
  EXPECT_ERROR(error_of([&] { objects_of(set, 0, kWidth, kHeight); }), set.images[0].path + ": object 1",
               "[50, 4, 60, 14]");
}

TEST(ObjectSet, RefusesAnImageOfAnotherSize) {
  const ObjectSet set = open_object_set(coco_folder(coco()));
  EXPECT_ERROR(error_of([&] { objects_of(set, 0, kHeight, kWidth); }), set.images[0].path, "20×40");
}

TEST(ObjectSet, NamesWhatIsMalformedInCoco) {
  const auto expect = [](const std::string& where, const char* value, const std::function<void(json&)>& change) {
    json content = coco();
    change(content);
    const fs::path folder = coco_folder(content);
    EXPECT_ERROR(error_of([&] { open_object_set(folder); }), coco_file(folder) + where, value);
  };
  expect(": categories", "none", [](json& c) { c.erase("categories"); });
  expect(": annotations[1]: category_id", "4", [](json& c) { c["annotations"][1]["category_id"] = 4; });
  expect(": annotations[2]: image_id", "1", [](json& c) { c["annotations"][2]["image_id"] = 1; });
  expect(": annotations[0]: bbox", "[1,2,3]", [](json& c) { c["annotations"][0]["bbox"] = {1, 2, 3}; });
  expect(": annotations[0]: bbox", "[1,null,3,4]", [](json& c) { c["annotations"][0]["bbox"] = {1, nullptr, 3, 4}; });
  expect(": annotations[0]: segmentation: counts", "[1.5]", [](json& c) {
    c["annotations"][0]["segmentation"] = {{"size", {1, 2}}, {"counts", {1.5}}};
  });
  expect(": annotations[0]: keypoints", "[1,2]", [](json& c) { c["annotations"][0]["keypoints"] = {1, 2}; });
  expect(": images[0]: file_name", "../b.png", [](json& c) { c["images"][0]["file_name"] = "../b.png"; });
  expect(": images[1]: id", "9", [](json& c) { c["images"][1]["id"] = 9; });
  expect("", "3 images without any", [](json& c) { c["annotations"] = json::array(); });
}

TEST(ObjectSet, RefusesMissingImages) {
  json content = coco();
  content["images"][1]["file_name"] = "d.png";
  const fs::path folder = coco_folder(content);
  EXPECT_ERROR(error_of([&] { open_object_set(folder); }), coco_file(folder),
               "no file for 1 of 3, such as " + (folder / "val2017" / "d.png").string());
  fs::remove_all(folder / "val2017");
  EXPECT_ERROR(error_of([&] { open_object_set(folder); }), coco_file(folder), "none");
}

TEST(ObjectSet, NamesWhatIsMalformedInLabelsOfYolo) {
  const auto expect = [](const std::string& labels, const std::string& line, const char* value) {
    const fs::path folder = yolo_folder(kYoloData, labels);
    EXPECT_ERROR(error_of([&] { open_object_set(folder); }), (folder / "labels" / "val" / "a.txt").string() + line,
                 value);
  };
  expect("0 0.5 0.5 0.1 0.1\n2 0.5 0.5 0.1 0.1\n", ":2", "2");
  expect("0.5 0.5 0.5 0.1 0.1\n", ":1", "0.5");
  expect("0 20 10 5 5\n", ":1", "20");
  expect("0 0.5 0.5 0.1 0.1 0.9\n", ":1", "a class and 5 numbers");
  expect("cat 0.5 0.5 0.1 0.1\n", ":1", "'cat 0.5 0.5 0.1 0.1'");
  const fs::path folder = yolo_folder();
  const fs::path labels = folder / "labels" / "val";
  for (const char* name : {"a.txt", "b.txt"}) fs::rename(labels / name, labels / (std::string("x") + name));
  EXPECT_ERROR(error_of([&] { open_object_set(folder); }), (folder / "images" / "val" / "a.png").string(),
               "no file " + (labels / "a.txt").string());
}

TEST(ObjectSet, NamesWhatIsMalformedInDataOfYolo) {
  const auto expect = [](const std::string& data, const std::string& where, const std::string& value) {
    const fs::path folder = yolo_folder(data);
    EXPECT_ERROR(error_of([&] { open_object_set(folder); }), (folder / "data.yaml").string() + where, value);
  };
  expect("val: images/val\n", "", "none");
  expect("val: images/val\nnc: 3\nnames: [cat, dog]\n", ":3: names", "2");
  expect("val: images/val\nnc: many\n", ":2: nc", "'many'");
  expect("val: images/val\nnames: {0: cat, 2: dog}\n", ":2: names", "'2'");
  expect("val: images/val\nnames: cats\n", ":2: names", "'cats'");
  expect("val: images/val\nnames: [cat, dog\n", ":2", "'[cat, dog'");
  expect("val: images/val\nval: b\n", ":2", "'val'");
  expect("val images\n", ":1", "'val images'");
  expect("val: images/val\nnames: [cat, dog]\nkpt_shape: [17]\n", ":3: kpt_shape", "[17]");
  expect("names: [cat]\n", "", "none");
  const fs::path folder = yolo_folder("val: elsewhere\nnames: [cat, dog]\n");
  EXPECT_ERROR(error_of([&] { open_object_set(folder); }), (folder / "data.yaml").string() + ":1",
               (folder / "elsewhere").string() + ", which is none");
}

TEST(ObjectSet, SaysWhichLabelsOfYoloHaveNoImage) {
  const fs::path folder = yolo_folder();
  write_file(folder / "labels" / "val" / "other.txt", "");
  const Warnings warnings;
  open_object_set(folder);
  EXPECT_EQ(warnings.messages, std::vector{(folder / "labels" / "val" / "other.txt").string() +
                                           ": no image of the split val has this name (1 file of labels left out)"});
}

TEST(ObjectSet, NamesWhatIsMalformedInPascalVoc) {
  const auto expect = [](const std::string& objects, const std::string& where, const char* value) {
    const fs::path folder = voc_folder(objects);
    EXPECT_ERROR(error_of([&] { open_object_set(folder); }), (folder / "Annotations" / "a.xml").string() + where,
                 value);
  };
  expect("<object><name>cat</name></object>", ":4", "none");
  expect("<object><bndbox/></object>", ":4", "none");
  expect(voc_object("", kCat), ":4", "none");
  expect("<object><name>cat</name><bndbox><xmin>a</xmin></bndbox></object>", ":4: xmin", "'a'");
  expect("<object>", ":4", "</annotation>");
  expect("<!-- ", ":4", "the end of the file");
  expect("&none;", ":4", "&none;");
  const fs::path folder = voc_folder(), list = folder / "ImageSets" / "Main" / "val.txt";
  write_file(list, "a\nz\n");
  EXPECT_ERROR(error_of([&] { open_object_set(folder); }), list.string(), "'z'");
  fs::remove(folder / "JPEGImages" / "t.png");
  EXPECT_ERROR(error_of([&] { open_object_set(folder, {.split = "train"}); }), folder.string(),
               "no file for 1 of 1, such as " + (folder / "JPEGImages" / "x.png").string());
}

TEST(ObjectSet, NamesWhatIsMalformedInCsv) {
  const auto expect = [](const std::string& row, const char* value) {
    const fs::path folder = csv_folder(row);
    EXPECT_ERROR(error_of([&] { open_object_set(folder); }), (folder / "annotations.csv").string() + ":2", value);
  };
  expect("a.png,2,4,12,wide,cat\n", "'wide'");
  expect("a.png,2,4,12,,cat\n", "''");
  expect("a.png,2,4,12,14,\n", "an empty field");
  expect(",2,4,12,14,cat\n", "an empty field");
}

TEST(ObjectSet, IsInOneForm) {
  const fs::path folder = yolo_folder();
  write_file(folder / "annotations.csv", "image,label,x1,y1,x2,y2\n");
  EXPECT_ERROR(error_of([&] { open_object_set(folder); }), folder.string(), "YOLO and CSV");
  expect_set(open_object_set(folder / "data.yaml"), "YOLO");
  const fs::path other = testing::scratch_folder();
  write_file(other / "train.csv", "image,label\na.png,cat\n");
  write_file(other / "cat" / "a.png", "");
  EXPECT_FALSE(is_object_set(other)) << "a list of images and their classes";
  EXPECT_TRUE(is_object_set(folder));
  EXPECT_ERROR(error_of([&] { open_object_set(other); }), other.string(), "a folder with cat/, train.csv");
  EXPECT_ERROR(error_of([&] { open_object_set(other / "cat" / "a.png"); }), (other / "cat" / "a.png").string(),
               "another file");
}

TEST(ObjectSet, MayLackItsImages) {
  const fs::path folder = coco_folder(coco());
  fs::remove_all(folder / "val2017");
  EXPECT_EQ(open_object_set(folder, {.without_images = true}).images[0].path, "a.png");
}

}  // namespace
}  // namespace vitrail::data
