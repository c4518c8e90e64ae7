// SPDX-License-Identifier: Apache-2.0
// Further models of a request: a detector of persons, and masks of Segment Anything for the boxes of objects.
#include "vitrail/tasks/option_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "tests/support/sam_fixture.h"
#include "vitrail/base/read_file.h"
#include "vitrail/base/text.h"
#include "vitrail/tasks/run.h"
#include "vitrail/tasks/segment/segment_model.h"

namespace vitrail::tasks {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::error_of;

// The folder of a model under tests/fixtures.
std::string model_folder(const std::string& name) {
  return testing::fixture(name + "/config.json").parent_path().string();
}
std::string sam_model(const std::string& name) { return testing::sam_fixture(name).model.string(); }

image::Image depth_image(int index) {
  static const testing::Golden images = testing::read_golden(testing::fixture("depth/images.safetensors"));
  const Tensor& pixels = images["image_" + std::to_string(index)];
  image::Image image = image::make_image(pixels.size(1), pixels.size(0), 3);
  std::memcpy(image.pixels.data(), pixels.raw(), image.pixels.size());
  return image;
}

struct TaskRun {
  Setting setting = {};
  std::string boxes = {};  // a file for all images
  std::vector<int> images = {0, 1};
};

// The results of a task for images of the fixture.
std::vector<json> results_of(const LoadedModel& model, const std::string& task, const Parameters& given,
                             const TaskRun& with = {}) {
  RequestOptions options;
  options.add(given);
  Setting setting = with.setting;
  if (!with.boxes.empty()) setting.input_files = {"boxes"};
  const auto request = find_task(task, model)->request(model, options, setting);
  options.require_all_taken();
  std::vector<Item> items;
  for (const int image : with.images) {
    items.push_back({.name = str(image, ".png"), .photo = depth_image(image)});
    items.back().input_files["boxes"] = std::make_shared<const std::string>(with.boxes);
  }
  run(model, *request, items);
  std::vector<json> results;
  for (const Item& item : items) results.push_back(json::parse(request->json(item)));
  return results;
}

const LoadedModel& model_at(const std::string& path) {
  static std::map<std::string, std::shared_ptr<const LoadedModel>> models;
  auto& model = models[path];
  if (!model) model = open_option_model("model", path);
  return *model;
}

class PromptedMasks : public ::testing::TestWithParam<std::string> {};

TEST_P(PromptedMasks, AreThoseOfSegmentWithTheBox) {
  const std::string path = sam_model(GetParam());
  const std::vector<json> found = results_of(model_at(model_folder("yolos/mid")), "detect", {{"masks", path}});
  for (size_t i : {0, 1}) {
    const auto side = [&](const json& box, size_t at) {
      const image::Image photo = depth_image(static_cast<int>(i));
      return std::clamp(box[at].get<double>(), 0.0, static_cast<double>(at % 2 == 0 ? photo.width : photo.height));
    };
    ASSERT_GE(found[i]["detections"].size(), 2U);
    for (const json& each : found[i]["detections"]) {
      std::ostringstream box;
      box.precision(17);
      for (size_t at = 0; at < 4; ++at) box << (at > 0 ? "," : "") << side(each["box"], at);
      const json want = results_of(model_at(path), "segment", {{"box", box.str()}, {"single", "true"}},
                                   {.images = {static_cast<int>(i)}})[0]["masks"];
      ASSERT_EQ(want.size(), 1U);
      EXPECT_EQ(each["rle"], want[0]["rle"]) << box.str();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, PromptedMasks,
                         ::testing::Values("global", "high_quality", "medsam", "mobile", "transformers"),
                         [](const auto& name) { return name.param; });

TEST(PromptedMasks, AreOfTheObjectsOfAnyDetector) {
  const Parameters masks{{"masks", sam_model("global")}};
  const auto detections = [&](const char* model, Parameters more) {
    more.insert(more.end(), masks.begin(), masks.end());
    return results_of(model_at(model_folder(model)), "detect", more)[0]["detections"];
  };
  const json tiles = detections("yolos/mid", {{"tile", "64"}}), labels = detections("owl/v2", {{"labels", "a cat"}});
  for (const json& found : {tiles, labels}) {
    ASSERT_FALSE(found.empty());
    for (const json& each : found) EXPECT_EQ(each["rle"]["size"], (json{203, 131}));
  }
  const json own = results_of(model_at(model_folder("rf_detr/masks")), "detect", {{"threshold", "0"}})[0]["detections"];
  const json prompted = detections("rf_detr/masks", {{"threshold", "0"}});
  ASSERT_EQ(own.size(), prompted.size());
  EXPECT_EQ(own[0]["box"], prompted[0]["box"]);
  EXPECT_NE(own[0]["rle"], prompted[0]["rle"]) << "they replace the model's own";
}

TEST(PersonDetector, FindsTheBoxesOfPersons) {
  const std::string detector = model_folder("yolos/mid");
  const LoadedModel& model = model_at(model_folder("vitpose/simple"));
  const std::vector<json> found = results_of(model_at(detector), "detect", {{"threshold", "0.3"}});
  const json label = found[0]["detections"][0]["label"];
  json boxes = json::array();
  for (const json& image : found) {
    for (const json& each : image["detections"]) {
      const json& box = each["box"];
      const double left = box[0], top = box[1], right = box[2], bottom = box[3];
      if (each["label"] == label)
        boxes.push_back({{"image_id", image["path"] == "0.png" ? 0 : 1},
                         {"bbox", {left, top, right - left, bottom - top}},
                         {"score", each["score"]}});
    }
  }
  const Parameters persons{{"detector", detector}, {"classes", label}, {"threshold", "0.3"}};
  std::vector<json> got = results_of(model, "pose", persons);
  size_t count = 0;
  for (json& image : got) {
    for (json& person : image["persons"]) {
      EXPECT_EQ(person["label"], label);
      person["label"] = "person";
      ++count;
    }
  }
  EXPECT_EQ(count, boxes.size());
  EXPECT_EQ(got, results_of(model, "pose", {}, {.boxes = boxes.dump()}));
  EXPECT_LT(results_of(model, "pose", {{"detector", detector}, {"classes", label}, {"threshold", "0.99"}})[0]["persons"]
                .size(),
            got[0]["persons"].size());
}

TEST(PersonDetector, TakesTheClassOfTheNamePerson) {
  const fs::path folder = testing::scratch_folder();
  fs::copy(model_folder("yolos/mid"), folder);
  json config = json::parse(read_text_file(folder / "config.json"));
  config["id2label"]["3"] = "person";
  std::ofstream(folder / "config.json") << config;
  const LoadedModel& model = model_at(model_folder("vitpose/simple"));
  const auto persons = results_of(model, "pose", {{"detector", folder.string()}});
  EXPECT_EQ(persons, results_of(model, "pose", {{"detector", folder.string()}, {"classes", "3"}}));
  ASSERT_FALSE(persons[0]["persons"].empty());
  EXPECT_EQ(persons[0]["persons"][0]["label"], "person");
}

TEST(OptionModels, AreOpenedOnce) {
  std::vector<std::string> opened;
  const Setting setting{.model = "", .open = [&](const std::string& option, const std::string& name) {
                          opened.push_back(option + " " + name);
                          return open_option_model(option, model_folder("yolos/mid"));
                        }};
  const Parameters options{{"detector", "yolos"}, {"classes", "cat"}, {"threshold", "0"}};
  const auto results = results_of(model_at(model_folder("vitpose/simple")), "pose", options, {.setting = setting});
  EXPECT_EQ(opened, std::vector<std::string>{"detector yolos"});
  EXPECT_EQ(results.size(), 2U);
}

TEST(OptionModels, ThatDoNotFitAreRefused) {
  const std::string pose = model_folder("vitpose/simple"), yolos = model_folder("yolos/mid");
  const auto error = [](const std::string& model, const std::string& task, const Parameters& given,
                        const TaskRun& with = {}) {
    return error_of([&] { results_of(model_at(model), task, given, with); });
  };
  EXPECT_ERROR(error(pose, "pose", {{"detector", pose}}), "detector", "ViTPose");
  EXPECT_ERROR(error(pose, "pose", {{"detector", yolos}}), "classes", "none of the name person");
  EXPECT_ERROR(error(pose, "pose", {{"detector", yolos}, {"classes", "cut"}}), "classes", "'cut'");
  EXPECT_ERROR(error(pose, "pose", {{"detector", yolos}}, {.boxes = "[]"}), "detector", "both");
  EXPECT_ERROR(error(pose, "pose", {{"classes", "cat"}}), "classes", "none");
  EXPECT_ERROR(error(pose, "pose", {{"threshold", "0.3"}}), "threshold", "none");
  EXPECT_ERROR(error(yolos, "detect", {{"masks", yolos}}), "masks", "YOLOS");
  EXPECT_ERROR(error(yolos, "detect", {{"masks", sam_model("timm_encoder")}}), "masks", "an image encoder alone");
  const std::string missing = (testing::scratch_folder() / "none.pth").string();
  const std::string message = error(yolos, "detect", {{"masks", missing}});
  EXPECT_TRUE(message.starts_with("masks: expected a model that can be opened, got " + missing)) << message;
}

}  // namespace
}  // namespace vitrail::tasks
