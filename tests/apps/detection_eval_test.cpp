// SPDX-License-Identifier: Apache-2.0
// eval of object detectors, and of results in COCO's format against pycocotools' values.
#include <fstream>
#include <functional>
#include <map>

#include "tests/apps/cli_fixture.h"
#include "tests/apps/option_effects.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

fs::path evaluated_detector() { return fixture("yolos/mid/config.json").parent_path(); }

// A set whose true objects are what the detector finds in two images, and one of a class that it does not have.
fs::path set_of_detections() {
  const fs::path set = scratch_folder();
  fs::create_directories(set / "images");
  for (const char* name : {"a.png", "b.png"}) fs::copy_file(noise_folder() / name, set / "images" / name);
  json images = json::array(), annotations = json::array(), categories = json::array();
  std::map<std::string, int> ids;
  for (const json& image : json_lines(run({"detect", "-m", evaluated_detector(), set / "images"}).out)) {
    const int id = static_cast<int>(images.size()) + 1;
    images.push_back({{"id", id}, {"file_name", fs::path(image["path"].get<std::string>()).filename().string()}});
    for (const json& found : image["detections"]) {
      const int category = ids.emplace(found["label"], static_cast<int>(ids.size()) + 1).first->second;
      const json& box = found["box"];
      const double width = box[2].get<double>() - box[0].get<double>();
      const double height = box[3].get<double>() - box[1].get<double>();
      annotations.push_back({{"id", annotations.size() + 1},
                             {"image_id", id},
                             {"category_id", category},
                             {"bbox", {box[0], box[1], width, height}},
                             {"area", width * height}});
    }
  }
  for (const auto& [name, id] : ids) categories.push_back({{"id", id}, {"name", name}});
  std::ofstream(set / "annotations.json")
      << json{{"images", images}, {"annotations", annotations}, {"categories", categories}};
  return set;
}

json evaluated_boxes(const fs::path& set, const Arguments& more = {}) {
  return json::parse(run(Arguments{"eval", "-m", evaluated_detector(), set, "--format", "json"} + more).out);
}

TEST(EvalOfDetectors, ItsOwnDetectionsAreRight) {
  const fs::path set = set_of_detections();
  const json report = evaluated_boxes(set);
  EXPECT_EQ(report["images"], 2);
  EXPECT_GT(report["objects"], 0);
  EXPECT_NEAR(report["boxes"]["ap"], 1, 1e-9);
  EXPECT_NEAR(report["boxes"]["ar100"], 1, 1e-9);
  EXPECT_GT(report["boxes"]["best_f1"]["score"], 0.5) << "all true objects have a higher score";
  for (const json& row : report["confusion"]) EXPECT_EQ(row[0], row[1]) << row;
  const std::string table = run({"eval", "-m", evaluated_detector(), set}).out;
  EXPECT_TRUE(contains(table, "boxes      ap 1.0000  ap50 1.0000")) << table;
}

TEST(EvalOfDetectors, RunsInInt8) {
  const fs::path set = set_of_detections();
  const json exact = evaluated_boxes(set)["boxes"], quantised = evaluated_boxes(set, {"--precision", "int8"})["boxes"];
  EXPECT_GT(quantised["ap50"], 0.5);
  EXPECT_NE(quantised["best_f1"]["score"], exact["best_f1"]["score"]);
}

TEST(EvalOfDetectors, WritesAReport) {
  const fs::path set = set_of_detections(), page = scratch_folder() / "report.html";
  std::ifstream file(set / "annotations.json");
  json content = json::parse(file);
  content["annotations"][0]["bbox"] = {0, 0, 2, 2};  // not what the model finds
  std::ofstream(set / "annotations.json") << content;
  run({"eval", "-m", evaluated_detector(), set, "--report", page, "--quiet"});
  std::ostringstream text;
  text << std::ifstream(page).rdbuf();
  for (const char* part : {"AP50", "Precision by recall", "Worst images", "(nothing)", "data:image/"})
    EXPECT_TRUE(contains(text.str(), part)) << part;
}

TEST(EvalOfDetectors, ClassesAreThoseOfTheSet) {
  const fs::path set = set_of_detections();
  std::ifstream file(set / "annotations.json");
  json content = json::parse(file);
  content["categories"].push_back({{"id", 99}, {"name", "zebra"}});
  std::ofstream(set / "annotations.json") << content;
  const ProgramResult some = run({"eval", "-m", evaluated_detector(), set});
  EXPECT_TRUE(contains(some.err, "does not know 1 of the ")) << some.err;
  for (json& category : content["categories"]) category["name"] = "other " + category["name"].get<std::string>();
  std::ofstream(set / "annotations.json") << content;
  const std::string none = refusal({"eval", "-m", evaluated_detector(), set});
  EXPECT_TRUE(contains(none, "expected classes of the model ") && contains(none, "got 'other ")) << none;
  EXPECT_TRUE(contains(refusal({"eval", "-m", evaluated_detector(), noise_folder()}), "YOLO's data.yaml"));
}

// A folder with the images val/1.png and val/2.png.
fs::path numbered_images() {
  const fs::path set = scratch_folder();
  fs::create_directories(set / "val");
  fs::create_directories(set / "annotations");
  fs::copy_file(noise_folder() / "a.png", set / "val/1.png");
  fs::copy_file(noise_folder() / "b.png", set / "val/2.png");
  return set;
}

json read_json(const fs::path& file) { return json::parse(std::ifstream(file)); }

// COCO's annotations of both images: results with truths of their own, every second one changed.
json truth_of(const json& results, const std::function<void(json&)>& change) {
  json annotations = json::array();
  for (json each : results) {
    each["id"] = annotations.size() + 1;
    each.erase("score");
    if (annotations.size() % 2 == 1) change(each);
    annotations.push_back(each);
  }
  const json images{{{"id", 1}, {"file_name", "1.png"}, {"width", 40}, {"height", 33}},
                    {{"id", 2}, {"file_name", "2.png"}, {"width", 34}, {"height", 51}}};
  return {{"images", images}, {"annotations", annotations}};
}

// What eval gives of a model is what it gives of the model's results in a file.
json same_of_results(const Arguments& model, const fs::path& set, const fs::path& results) {
  const auto report = [&](const Arguments& of) {
    return json::parse(run(Arguments{"eval", set, "--format", "json"} + of).out);
  };
  const json of_model = report(model);
  EXPECT_EQ(of_model, report({"--detections", results}));
  return of_model;
}

TEST(EvalOfDetectors, MasksAreComparedAsThoseOfAFile) {
  const fs::path model = fixture("rf_detr/masks/config.json").parent_path(), set = numbered_images();
  const fs::path results = set / "results.json", truth = set / "annotations/instances_val.json";
  run({"detect", "-m", model, set / "val", "--coco", results, "--threshold", "0.55"});
  json annotations = truth_of(read_json(results), [](json& each) {
    each["bbox"][2] = each["bbox"][2].get<double>() * 0.77;
    each["segmentation"] = json::array({{0, 0, 30, 0, 30, 30, 0, 30}});
  });
  for (json& each : annotations["annotations"]) each["area"] = 500;
  for (int i = 0; i < 5; ++i)
    annotations["categories"].push_back(
        {{"id", i}, {"name", read_json(model / "config.json")["id2label"][std::to_string(i)]}});
  std::ofstream(truth) << annotations;
  run({"detect", "-m", model, set / "val", "--coco", results, "--threshold", "0"});
  const json report = same_of_results({"-m", model}, set, results);
  EXPECT_GT(report["masks"]["ap"], 0.01);
  EXPECT_LT(report["masks"]["ap"], report["boxes"]["ap50"]) << "some masks are others";

  for (json& each : annotations["annotations"]) each.erase("segmentation");
  std::ofstream(truth) << annotations;
  const json boxes = json::parse(run({"eval", "-m", model, set, "--format", "json"}).out);
  EXPECT_FALSE(boxes.contains("masks")) << "the set has none";
  EXPECT_EQ(boxes["boxes"], report["boxes"]);
}

fs::path pose_estimator() { return fixture("vitpose/simple/config.json").parent_path(); }

// The detector with a class that has the name person.
fs::path detector_of_persons() {
  const fs::path folder = scratch_folder();
  fs::copy(evaluated_detector(), folder);
  json config = read_json(folder / "config.json");
  config["id2label"]["3"] = "person";
  std::ofstream(folder / "config.json") << config;
  return folder;
}

// A set of persons whose key points are those that the model finds in some boxes; every second one is moved.
fs::path set_of_poses() {
  const fs::path set = numbered_images(), results = set / "results.json", boxes = set / "boxes.json";
  const json given{{{"image_id", 1}, {"bbox", {2, 2, 20, 25}}},
                   {{"image_id", 1}, {"bbox", {10, 5, 20, 20}}},
                   {{"image_id", 2}, {"bbox", {1, 1, 25, 25}}},
                   {{"image_id", 2}, {"bbox", {5, 5, 15, 25}}}};
  json found = json::array();
  for (const json& box : given) {  // one by one: results have no boxes
    std::ofstream(boxes) << json::array({box});
    run({"pose", "-m", pose_estimator(), set / "val", "--boxes", boxes, "--coco", results});
    found.push_back(read_json(results).at(0));
    found.back()["bbox"] = box["bbox"];
    found.back()["category_id"] = 3;
    found.back()["area"] = 500;
    for (size_t i = 2; i < 15; i += 3) found.back()["keypoints"][i] = 2;
  }
  json truth = truth_of(found, [](json& each) { each["keypoints"][0] = each["keypoints"][0].get<double>() + 9; });
  truth["categories"] = {{{"id", 3}, {"name", "person"}, {"keypoints", {"a", "b", "c", "d", "e"}}}};
  std::ofstream(set / "annotations/person_keypoints_val.json") << truth;
  return set;
}

TEST(EvalOfPoses, KeyPointsAreComparedAsThoseOfAFile) {
  const fs::path set = set_of_poses(), results = set / "results.json";
  const fs::path truth = set / "annotations/person_keypoints_val.json";
  run({"pose", "-m", pose_estimator(), set / "val", "--boxes", truth, "--coco", results});
  const json report = same_of_results({"-m", pose_estimator()}, set, results);
  EXPECT_EQ(report["objects"], 4);
  EXPECT_GT(report["keypoints"]["ap"], 0.2);
  EXPECT_LT(report["keypoints"]["ap"], 0.999) << "two persons have a key point elsewhere";

  json more = read_json(truth);
  for (const char* key : {"crowd", "unlabelled"}) {
    json person = more["annotations"][0];
    person["id"] = more["annotations"].size() + 1;
    person["bbox"] = {0, 0, 30, 30};
    person["iscrowd"] = key == std::string("crowd") ? 1 : 0;
    if (person["iscrowd"] == 0) person["keypoints"] = json(15, 0);
    more["annotations"].push_back(person);
  }
  std::ofstream(truth) << more;
  EXPECT_EQ(json::parse(run({"eval", "-m", pose_estimator(), set, "--format", "json"}).out)["keypoints"],
            report["keypoints"])
      << "neither is a person whose key points are wanted";
}

void check_detector_of_eval() {
  const fs::path set = set_of_poses(), results = set / "results.json", detector = detector_of_persons();
  run({"pose", "-m", pose_estimator(), set / "val", "--detector", detector, "--coco", results});
  ASSERT_FALSE(read_json(results).empty());
  const json report = same_of_results({"-m", pose_estimator(), "--detector", detector}, set, results);
  EXPECT_NE(report["keypoints"],
            json::parse(run({"eval", "-m", pose_estimator(), set, "--format", "json"}).out)["keypoints"]);
  const Arguments command{"eval", "-m", pose_estimator(), set};
  const std::string other = refusal(command + Arguments{"--detector", pose_estimator()});
  EXPECT_TRUE(contains(other, "--detector: expected an object detector (RF-DETR, LW-DETR, YOLOS), got ViTPose"))
      << other;
  const ProgramResult classifier = run_program({"eval", "-m", small_model(), set, "--detector", detector});
  EXPECT_TRUE(contains(classifier.err, "--detector: belongs to a pose estimator")) << classifier.err;
  const ProgramResult page = run_program(command + Arguments{"--report", set / "report.html"});
  EXPECT_TRUE(contains(page.err, "--report: is of boxes")) << page.err;
  const fs::path truth = set / "annotations/person_keypoints_val.json";
  json fewer = read_json(truth);
  for (json& each : fewer["annotations"]) each["keypoints"] = {1, 1, 2, 5, 5, 2};
  fewer["categories"][0]["keypoints"] = {"a", "b"};
  std::ofstream(truth) << fewer;
  const std::string count = refusal(command);
  EXPECT_TRUE(contains(count, "expected objects with the 5 key points of the model, got 2")) << count;
}

void check_classes_of_eval() {
  const fs::path set = set_of_poses(), detector = detector_of_persons();
  const Arguments command{"eval", "-m", pose_estimator(), set, "--format", "json", "--detector"};
  const auto points = [&](const Arguments& more) { return json::parse(run(command + more).out)["keypoints"]; };
  EXPECT_EQ(points({detector, "--classes", "person"}), points({detector}));
  EXPECT_EQ(points({evaluated_detector(), "--classes", "3"}), points({detector})) << "the class that is person there";
  EXPECT_NE(points({detector, "--classes", "cat"}), points({detector}));
  const std::string none = refusal(command + Arguments{evaluated_detector()});
  EXPECT_TRUE(contains(none, "--classes: expected those of persons, of the detector's ")) << none;
  const std::string unknown = refusal(command + Arguments{detector, "--classes", "persons"});
  EXPECT_TRUE(contains(unknown, "--classes: expected a name or an index of the model's ")) << unknown;
  const ProgramResult alone = run_program({"eval", "-m", pose_estimator(), set, "--classes", "person"});
  EXPECT_TRUE(contains(alone.err, "--classes requires --detector")) << alone.err;
}

// The truth and the results of a kind, as files.
std::pair<fs::path, fs::path> result_files(const json& reference, const char* prefix) {
  const fs::path folder = scratch_folder(), set = folder / "set";
  fs::create_directories(set / "annotations");
  std::ofstream(set / "annotations" / (std::string(prefix) + "_val.json")) << reference["truth"];
  std::ofstream(folder / "results.json") << reference["results"];
  return {set, folder / "results.json"};
}

json coco_reference(const char* kind, const char* file = "analysis/coco_metrics.json") {
  return read_json(fixture(file)).at(kind);
}

// Without objects of a size pycocotools gives -1.
void expect_results(const char* file, const char* kind, const char* name, const char* prefix,
                    const std::vector<const char*>& keys) {
  const json reference = coco_reference(kind, file);
  const auto [set, results] = result_files(reference, prefix);
  const json report = json::parse(run({"eval", "--detections", results, set, "--format", "json"}).out);
  for (size_t i = 0; i < keys.size(); ++i) {
    const json& got = report[name].at(keys[i]);
    EXPECT_NEAR(got.is_null() ? -1 : got.get<double>(), reference["stats"][i], 1e-12) << kind << " " << keys[i];
  }
  for (size_t c = 0; c < reference["per_class"].size(); ++c) {
    const json &got = report["classes"][c][name]["ap"], &want = reference["per_class"][c];
    ASSERT_EQ(got.is_null(), want.is_null()) << c;
    if (!want.is_null()) {
      EXPECT_NEAR(got, want, 1e-12) << c;
    }
  }
}

const std::vector<const char*> kCocoBoxKeys{"ap",  "ap50", "ap75",  "ap_small", "ap_medium", "ap_large",
                                            "ar1", "ar10", "ar100", "ar_small", "ar_medium", "ar_large"};

// Drawn objects, and those of photographs.
TEST(EvalOfResults, AreThoseOfPycocotools) {
  for (const char* file : {"analysis/coco_metrics.json", "analysis/coco_photos.json"}) {
    expect_results(file, "bbox", "boxes", "instances", kCocoBoxKeys);
    expect_results(file, "segm", "masks", "instances", kCocoBoxKeys);
    expect_results(file, "keypoints", "keypoints", "person_keypoints",
                   {"ap", "ap50", "ap75", "ap_medium", "ap_large", "ar", "ar50", "ar75", "ar_medium", "ar_large"});
  }
}

TEST(EvalOfResults, NameWhatIsMalformed) {
  const json reference = coco_reference("bbox");
  const auto refused = [&](const char* key, const json& value) {
    json changed = reference;
    changed["results"][1][key] = value;
    const auto [set, results] = result_files(changed, "instances");
    return refusal({"eval", "--detections", results, set});
  };
  EXPECT_TRUE(contains(refused("image_id", -1), "[1]: image_id: expected the id of an image of "));
  EXPECT_TRUE(contains(refused("category_id", 4), "[1]: category_id: expected the id of a category of "));
  EXPECT_TRUE(contains(refused("bbox", {1, 2}), "[1]: bbox: expected [x, y, width, height], got [1,2]"));
  EXPECT_TRUE(contains(refused("score", "high"), "[1]: score: expected a number, got \"high\""));
  const auto [set, results] = result_files(reference, "instances");
  const fs::path empty = scratch_folder() / "empty.json";
  std::ofstream(empty) << "[]";
  EXPECT_TRUE(contains(refusal({"eval", "--detections", empty, set}), "got an empty list"));
  const ProgramResult both = run_program({"eval", "-m", evaluated_detector(), "--detections", results, set});
  EXPECT_EQ(both.status, 2);
  const ProgramResult other = run_program({"eval", "--detections", results, set, "--zeroshot"});
  EXPECT_EQ(other.status, 2);
}

void check_detections_of_eval() {
  const auto [set, results] = result_files(coco_reference("bbox"), "instances");
  const json all = json::parse(run({"eval", "--detections", results, set, "--format", "json"}).out);
  json some = coco_reference("bbox");
  some["results"] = json::array({some["results"][0]});
  const auto [same, fewer] = result_files(some, "instances");
  EXPECT_LT(json::parse(run({"eval", "--detections", fewer, same, "--format", "json"}).out)["boxes"]["ar100"],
            all["boxes"]["ar100"]);
}

}  // namespace

OptionEffects box_eval_option_effects() {
  return {{"eval", "--detections", check_detections_of_eval},
          {"eval", "--detector", check_detector_of_eval},
          {"eval", "--classes", check_classes_of_eval}};
}

}  // namespace vitrail::testing
