// SPDX-License-Identifier: Apache-2.0
// eval of object detectors, and of results in COCO's format against pycocotools' values.
#include <fstream>
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

// The truth and the results of a kind, as files.
std::pair<fs::path, fs::path> result_files(const json& reference, const char* prefix) {
  const fs::path folder = scratch_folder(), set = folder / "set";
  fs::create_directories(set / "annotations");
  std::ofstream(set / "annotations" / (std::string(prefix) + "_val.json")) << reference["truth"];
  std::ofstream(folder / "results.json") << reference["results"];
  return {set, folder / "results.json"};
}

json coco_reference(const char* kind) {
  static const json cases = json::parse(std::ifstream(fixture("analysis/coco_metrics.json")));
  return cases.at(kind);
}

void expect_results(const char* kind, const char* name, const char* prefix, const std::vector<const char*>& keys) {
  const json reference = coco_reference(kind);
  const auto [set, results] = result_files(reference, prefix);
  const json report = json::parse(run({"eval", "--detections", results, set, "--format", "json"}).out);
  for (size_t i = 0; i < keys.size(); ++i)
    EXPECT_NEAR(report[name][keys[i]], reference["stats"][i], 1e-12) << kind << " " << keys[i];
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

TEST(EvalOfResults, AreThoseOfPycocotools) {
  expect_results("bbox", "boxes", "instances", kCocoBoxKeys);
  expect_results("segm", "masks", "instances", kCocoBoxKeys);
  expect_results("keypoints", "keypoints", "person_keypoints",
                 {"ap", "ap50", "ap75", "ap_medium", "ap_large", "ar", "ar50", "ar75", "ar_medium", "ar_large"});
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

OptionEffects box_eval_option_effects() { return {{"eval", "--detections", check_detections_of_eval}}; }

}  // namespace vitrail::testing
