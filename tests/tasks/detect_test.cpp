// SPDX-License-Identifier: Apache-2.0
// YOLOS against transformers', and the task detect: fixtures of tools/golden/yolos.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/image/draw.h"
#include "vitrail/tasks/detect/detection_files.h"
#include "vitrail/tasks/detect/yolos_model.h"
#include "vitrail/tasks/run.h"

namespace vitrail::tasks {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::error_of;

fs::path yolos_folder(const std::string& name) {
  return testing::fixture("yolos/" + name + "/config.json").parent_path();
}

testing::Golden yolos_golden(const std::string& name) {
  return testing::read_golden(yolos_folder(name) / "golden.safetensors");
}

image::Image yolos_image(int index) {
  static const testing::Golden images = testing::read_golden(testing::fixture("depth/images.safetensors"));
  const Tensor& pixels = images["image_" + std::to_string(index)];
  image::Image image = image::make_image(pixels.size(1), pixels.size(0), 3);
  std::memcpy(image.pixels.data(), pixels.raw(), image.pixels.size());
  return image;
}

double largest_in(const Tensor& tensor) {
  double result = 0;
  for (const float value : std::span(tensor.data<float>(), static_cast<size_t>(tensor.numel())))
    result = std::max(result, std::abs(static_cast<double>(value)));
  return result;
}

class YolosParity : public ::testing::TestWithParam<std::string> {};

TEST_P(YolosParity, OutputsAndObjectsEqualTheReference) {
  const testing::Golden golden = yolos_golden(GetParam());
  const YolosModel model(yolos_folder(GetParam()), {});
  for (int i = 0; i < 2; ++i) {
    const auto encoded = model.encode(yolos_image(i));
    const auto& encoding = static_cast<const QueryEncoding&>(*encoded);
    const Tensor& logits = golden[str("logits_", i)];
    EXPECT_TRUE(testing::close(encoding.logits, logits, 1e-5 * largest_in(logits)));
    EXPECT_TRUE(testing::close(encoding.boxes, golden[str("boxes_", i)], 1e-5));
    const Detections found = model.detections(encoding, 0.5F);
    const Tensor &scores = golden[str("scores_", i)], &labels = golden[str("labels_", i)],
                 &boxes = golden[str("found_", i)];
    ASSERT_EQ(std::ssize(found), scores.numel());
    for (size_t k = 0; k < found.size(); ++k) {
      EXPECT_EQ(static_cast<float>(found[k].index), labels.data<float>()[k]);
      EXPECT_EQ(found[k].label, model.class_names()[static_cast<size_t>(found[k].index)]);
      EXPECT_NEAR(found[k].score, scores.data<float>()[k], 1e-5);
      for (size_t side = 0; side < 4; ++side) EXPECT_NEAR(found[k].box[side], boxes.data<float>()[4 * k + side], 0.005);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, YolosParity, ::testing::Values("mid", "plain"),
                         [](const auto& name) { return name.param; });

TEST(YolosModel, RunsInTheOtherPrecisions) {
  const Tensor want = yolos_golden("mid")["logits_0"];
  for (const auto& [precision, tolerance] :
       {std::pair{kernels::Precision::half, 0.02}, {kernels::Precision::int8, 0.2}}) {
    const YolosModel model(yolos_folder("mid"), {.model = {.precision = precision}});
    const auto encoding = model.encode(yolos_image(0));
    const Tensor& got = static_cast<const QueryEncoding&>(*encoding).logits;
    EXPECT_TRUE(testing::close(got, want, tolerance * largest_in(want))) << kernels::name_of(precision);
    EXPECT_FALSE(testing::close(got, want, 1e-5 * largest_in(want))) << "it is another precision";
  }
}

TEST(YolosModel, InputsHaveTheSizesOfTheReference) {
  models::YolosConfig config;
  config.preprocessing.resize_shortest = 800;
  config.preprocessing.resize_longest = 1333;
  int narrow = 0;
  for (const json& row : json::parse(read_text_file(testing::fixture("yolos/sizes.json")))) {
    const std::array<int64_t, 4> size = row;
    const std::array<int64_t, 2> want{size[2], size[3]};
    if (std::min(want[0], want[1]) < 16) {
      ++narrow;
      EXPECT_ERROR(error_of([&] { models::yolos_input_size(config, size[0], size[1]); }), "image",
                   str(size[1], "×", size[0], " pixels, ", want[1], "×", want[0], " there"));
    } else {
      EXPECT_EQ(models::yolos_input_size(config, size[0], size[1]), want) << row;
    }
  }
  EXPECT_GT(narrow, 0);
  config.preprocessing.resize_shortest.reset();
  EXPECT_EQ(models::yolos_input_size(config, 50, 70), (std::array<int64_t, 2>{50, 70}));
  EXPECT_ERROR(error_of([&] { models::yolos_input_size(config, 4096, 4096); }), "image", "4096×4096 pixels there");
  config.preprocessing.resize_to = {64, 96};
  EXPECT_EQ(models::yolos_input_size(config, 50, 70), (std::array<int64_t, 2>{64, 96}));
}

// A folder with a fixture's weights and another configuration.
fs::path changed_yolos(const std::string& file, const std::function<void(json&)>& change) {
  const fs::path from = yolos_folder("plain"), to = testing::scratch_folder();
  for (const char* each : {"config.json", "preprocessor_config.json", "model.safetensors"})
    fs::copy_file(from / each, to / each);
  json object = json::parse(read_text_file(from / file));
  change(object);
  std::ofstream(to / file) << object;
  return to;
}

TEST(YolosModel, RefusesOtherConfigurations) {
  const auto expect = [](const char* file, const char* where, const char* value,
                         const std::function<void(json&)>& change) {
    const fs::path folder = changed_yolos(file, change);
    std::string message = error_of([&] { YolosModel(folder, {}); });
    if (message.starts_with(folder.string())) message.erase(0, folder.string().size() + 1);
    EXPECT_ERROR(message, str(file, ": ", where), value);
  };
  const char *model = "config.json", *processor = "preprocessor_config.json";
  expect(model, "model_type", "\"vit\"", [](json& c) { c["model_type"] = "vit"; });
  expect(model, "num_detection_tokens", "0", [](json& c) { c["num_detection_tokens"] = 0; });
  expect(model, "num_detection_tokens", "4097", [](json& c) { c["num_detection_tokens"] = 4097; });
  expect(model, "num_labels", "0", [](json& c) {
    c.erase("id2label");
    c["num_labels"] = 0;
  });
  expect(processor, "image_processor_type", "\"DetrImageProcessor\"",
         [](json& c) { c["image_processor_type"] = "DetrImageProcessor"; });
  expect(processor, "size", R"({"shortest_edge":112})", [](json& c) { c["size"].erase("longest_edge"); });
}

// Older files have one number and max_size.
TEST(YolosModel, ReadsOlderSizes) {
  const fs::path folder = changed_yolos("preprocessor_config.json", [](json& c) {
    c.erase("image_processor_type");
    c["feature_extractor_type"] = "YolosFeatureExtractor";
    c["size"] = 112;
    c["max_size"] = 128;
  });
  const auto logits = [](const fs::path& of) {
    const YolosModel model(of, {});
    return static_cast<const QueryEncoding&>(*model.encode(yolos_image(1))).logits;
  };
  EXPECT_TRUE(testing::close(logits(folder), logits(yolos_folder("plain")), 0));
}

// The result of the task for an image.
json detected(const Parameters& given, const Setting& setting = {}, image::Image* rendered = nullptr,
              Tensor* array = nullptr) {
  static const YolosModel model(yolos_folder("mid"), {});
  RequestOptions options;
  options.add(given);
  const auto request = find_task("detect", model)->request(model, options, setting);
  std::vector<Item> items(1);
  items[0].name = "a.png";
  items[0].photo = yolos_image(0);
  run(model, *request, items);
  if (rendered) *rendered = request->render(items[0]);
  if (array) *array = request->array(items[0], 0);
  return json::parse(request->json(items[0]));
}

TEST(Detect, ResultsAreTheObjectsAboveAThreshold) {
  const json all = detected({{"threshold", "0"}}), best = detected({});
  EXPECT_EQ(all["path"], "a.png");
  EXPECT_EQ(all["detections"].size(), 9U);
  ASSERT_EQ(best["detections"].size(), static_cast<size_t>(yolos_golden("mid")["scores_0"].numel()));
  double last = 1;
  for (const json& each : best["detections"]) {
    EXPECT_LE(each["score"], last);
    EXPECT_GT(last = each["score"], 0.5);
    EXPECT_EQ(each.size(), 4U);
    EXPECT_EQ(each["box"].size(), 4U);
  }
  EXPECT_EQ(detected({{"threshold", "1"}})["detections"], json::array());
}

TEST(Detect, ClassesAreNamesOrIndices) {
  const json all = detected({});
  const json first = all["detections"][0];
  const auto of_class = [&](const std::string& text) {
    const json found = detected({{"classes", text}})["detections"];
    EXPECT_LT(found.size(), all["detections"].size());
    for (const json& each : found) EXPECT_EQ(each["index"], first["index"]);
    return found;
  };
  const json by_name = of_class(first["label"]);
  EXPECT_FALSE(by_name.empty());
  EXPECT_EQ(of_class(std::to_string(first["index"].get<int>())), by_name);
  Parameters every;
  for (const char* name : {"cat", "dog", "2", "traffic light", "cup"}) every.emplace_back("classes", name);
  EXPECT_EQ(detected(every), all);
  EXPECT_ERROR(error_of([&] { detected({{"classes", "cut"}}); }), "classes", "'cut'");
  EXPECT_ERROR(error_of([&] { detected({{"classes", "5"}}); }), "classes", "'5'");
}

// The IoU of the first two boxes is 80 / 120, that of the first and the fourth 50 / 150, of the second and the fourth
// 70 / 130.
TEST(Detect, BetterObjectsOfAClassSuppressOthers) {
  const Detections all{{"a", 0, 0.9F, {0, 0, 10, 10}},
                       {"a", 0, 0.8F, {2, 0, 12, 10}},
                       {"b", 1, 0.7F, {0, 0, 10, 10}},
                       {"a", 0, 0.6F, {5, 0, 15, 10}},
                       {"a", 0, 0.5F, {20, 20, 20, 30}}};
  const auto scores = [&](double iou) {
    Detections kept = all;
    suppress(kept, iou);
    std::vector<float> result;
    for (const Detection& each : kept) result.push_back(each.score);
    return result;
  };
  EXPECT_EQ(scores(0.7), (std::vector{0.9F, 0.8F, 0.7F, 0.6F, 0.5F}));
  EXPECT_EQ(scores(0.5), (std::vector{0.9F, 0.7F, 0.6F, 0.5F})) << "what is left out suppresses nothing";
  EXPECT_EQ(scores(0.3), (std::vector{0.9F, 0.7F, 0.5F}));
  const json few = detected({{"nms", "0"}, {"threshold", "0"}});
  EXPECT_LT(few["detections"].size(), detected({{"threshold", "0"}})["detections"].size());
}

// The second box is a part of the first one: their IoU is 6 / 100.
TEST(Detect, OverlapsOfTheSmallerBoxTellParts) {
  const Detections all{{"a", 0, 0.9F, {0, 0, 10, 10}}, {"a", 0, 0.8F, {1, 1, 4, 3}}, {"a", 0, 0.7F, {8, 8, 12, 12}}};
  Detections by_union = all, by_smaller = all;
  suppress(by_union, 0.5);
  suppress(by_smaller, 0.5, Overlap::of_smaller);
  EXPECT_EQ(by_union.size(), 3U);
  ASSERT_EQ(by_smaller.size(), 2U) << "a quarter of the third box is in the first one";
  EXPECT_EQ(by_smaller[1].score, 0.7F);
}

// An image of 131×203 pixels.
TEST(Detect, TilesAddTheirObjectsToThoseOfTheImage) {
  const YolosModel model(yolos_folder("mid"), {});
  const image::Image photo = yolos_image(0);
  Detections want = model.detections(*model.encode(photo), 0.3F);
  for (const int64_t top : {0, 80, 103}) {
    for (const int64_t left : {0, 31}) {
      const image::ImageView part(photo.row(top) + 3 * left, 100, 100, image::PixelFormat::rgb, 3 * photo.width);
      for (Detection each : model.detections(*model.encode(part), 0.3F)) {
        for (const size_t side : {0, 2}) each.box[side] += static_cast<float>(left);
        for (const size_t side : {1, 3}) each.box[side] += static_cast<float>(top);
        want.push_back(each);
      }
    }
  }
  sort_by_score(want);
  suppress(want, 0.5, Overlap::of_smaller);
  const Parameters whole{{"threshold", "0.3"}};
  const auto with = [&](const Parameters& more) {
    Parameters given = whole;
    given.insert(given.end(), more.begin(), more.end());
    return detected(given);
  };
  const json got = with({{"tile", "100"}});
  EXPECT_EQ(got, json::parse(detections_json("a.png", want)));
  EXPECT_NE(got, with({}));
  EXPECT_NE(got, with({{"tile", "100"}, {"tile-overlap", "0.5"}}));
  EXPECT_EQ(with({{"tile", "203"}}), with({})) << "the image is not larger than a tile";
  EXPECT_LT(with({{"tile", "100"}, {"nms", "0"}})["detections"].size(), got["detections"].size());
}

TEST(Detect, ThousandsOfTilesAreRefused) {
  const YolosModel model(yolos_folder("mid"), {});
  RequestOptions options;
  options.add({{"tile", "32"}, {"tile-overlap", "0.9"}});
  const auto request = find_task("detect", model)->request(model, options, {});
  Item item{.photo = image::make_image(400, 400, 3)};
  EXPECT_ERROR(error_of([&] { request->compute(item, model.encode(item.photo).get(), {}); }), "tile", "8649");
}

TEST(Detect, FilesHaveTheObjectsAsOtherProgramsReadThem) {
  const Detections found{{"cat", 3, 0.5F, {10, -5, 60, 20}}, {"a, \"b\"", 0, 0.25F, {0, 0, 100, 40}}};
  const auto file = [&](const std::string& kind, const std::string& name, const Detections& detections) {
    return detection_file(kind, {.name = name, .width = 100, .height = 40}, detections);
  };
  EXPECT_EQ(file("coco", "x/000139.jpg", found),
            R"({"image_id":139,"category_id":3,"bbox":[10.0,-5.0,50.0,25.0],"score":0.5})"
            ",\n"
            R"({"image_id":139,"category_id":0,"bbox":[0.0,0.0,100.0,40.0],"score":0.25})");
  EXPECT_EQ(json::parse(file("coco", "x/1b.jpg", {found[0]}))["image_id"], "1b");
  EXPECT_EQ(file("yolo", "x.jpg", found), "3 0.35 0.25 0.5 0.5 0.5\n0 0.5 0.5 1 1 0.25\n") << "cut to the image";
  EXPECT_EQ(file("csv", "x,1.jpg", found),
            "\"x,1.jpg\",cat,3,0.5,10,-5,60,20,\n\"x,1.jpg\",\"a, \"\"b\"\"\",0,0.25,0,0,100,40,\n");
  Detection tracked = found[0];
  tracked.track = 12;
  EXPECT_EQ(file("coco", "7.jpg", {tracked}),
            R"({"image_id":7,"category_id":3,"bbox":[10.0,-5.0,50.0,25.0],"score":0.5,"track_id":12})");
  EXPECT_EQ(file("csv", "7.jpg", {tracked}), "7.jpg,cat,3,0.5,10,-5,60,20,12\n");
  for (const FileKind& kind : detection_file_kinds()) EXPECT_EQ(file(kind.name, "x.jpg", {}), "") << kind.name;
}

TEST(Detect, ArraysHaveARowForEachObject) {
  Tensor array;
  const json all = detected({}, {}, nullptr, &array);
  ASSERT_EQ(array.size(0), std::ssize(all["detections"]));
  const json last = all["detections"].back();
  const float* const row = array.data<float>() + 6 * (array.size(0) - 1);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(row[i], last["box"][i].get<float>());
  EXPECT_EQ(row[4], last["score"].get<float>());
  EXPECT_EQ(row[5], last["index"].get<float>());
  detected({{"threshold", "1"}}, {}, nullptr, &array);
  EXPECT_EQ(array.shape(), (Shape{0, 6}));
}

TEST(Detect, OverlaysHaveBoxesAndLabelsInTheColorOfTheClass) {
  image::Image photo = image::make_image(100, 60, 3);
  const Detections detections{{.label = "cat", .index = 3, .score = 0.9F, .box = {20.2F, 29.6F, 80, 50}}};
  const image::Image image = detections_overlay(photo, detections);
  const image::PixelColor color = image::voc_color(4);
  const auto pixel = [&](int64_t x, int64_t y) {
    const uint8_t* const at = image.row(y) + 3 * x;
    return image::PixelColor{at[0], at[1], at[2]};
  };
  for (const auto& [x, y] : {std::pair{20, 30}, {79, 30}, {20, 49}, {79, 49}, {50, 31}, {50, 48}, {21, 40}, {78, 40}})
    EXPECT_EQ(pixel(x, y), color) << x << ", " << y;
  for (const auto& [x, y] : {std::pair{50, 40}, {19, 40}, {80, 40}, {50, 47}, {50, 50}, {77, 40}, {90, 25}})
    EXPECT_EQ(pixel(x, y), (image::PixelColor{0, 0, 0})) << x << ", " << y;
  EXPECT_EQ(pixel(20, 29), color) << "the label's background is above the box";
  int64_t letters = 0;
  for (int64_t y = 19; y < 30; ++y) {
    for (int64_t x = 20; x < 66; ++x) letters += pixel(x, y) == image::PixelColor{255, 255, 255};
  }
  EXPECT_GT(letters, 50);
}

TEST(Detect, LabelsOfAnOverlayDoNotCoverOneAnother) {
  const std::array<float, 4> box{20, 30, 80, 50};
  const Detections detections{{"cat", 0, 0.5F, box}, {"dog", 1, 0.4F, box}, {"cow", 2, 0.3F, box}};
  const image::Image image = detections_overlay(image::make_image(100, 90, 3), detections);
  // Above the box, inside it and below it: the left column of a label has no letters.
  const std::pair<int64_t, int64_t> rows[] = {{19, 30}, {30, 41}, {50, 61}};
  for (size_t i = 0; i < 3; ++i) {
    const image::PixelColor color = image::voc_color(static_cast<int64_t>(i) + 1);
    for (int64_t y = rows[i].first; y < rows[i].second; ++y)
      EXPECT_TRUE(std::equal(color.begin(), color.end(), image.row(y) + 3 * 20)) << i << ": " << y;
  }
}

// Boxes beyond the image and labels at its edges are cut or moved.
TEST(Detect, OverlaysStayInTheImage) {
  image::Image photo = image::make_image(60, 40, 3);
  const Detections detections{{.label = "cat", .index = 0, .score = 0.9F, .box = {50, -5, 90, 55}}};
  const image::Image image = detections_overlay(photo, detections);
  const image::PixelColor color = image::voc_color(1);
  EXPECT_TRUE(std::equal(color.begin(), color.end(), image.row(39) + 3 * 50));
  EXPECT_TRUE(std::equal(color.begin(), color.end(), image.row(0) + 3 * 59)) << "the label ends at the edge";
  EXPECT_FALSE(std::equal(color.begin(), color.end(), image.row(39) + 3 * 59));
}

}  // namespace
}  // namespace vitrail::tasks
