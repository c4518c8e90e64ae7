// SPDX-License-Identifier: Apache-2.0
// The options of `vitrail pose`, and what other commands say to its model.
#include "tests/apps/cli_fixture.h"
#include "tests/apps/option_effects.h"
#include "vitrail/base/npy.h"
#include "vitrail/image/decode.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

fs::path poser_folder(const std::string& name = "simple") {
  return fixture("vitpose/" + name + "/config.json").parent_path();
}

// Runs on two images.
std::vector<json> persons_of(const Arguments& more = {}, const std::string& model = "simple") {
  return json_lines(run(Arguments{"pose", "-m", poser_folder(model), noise_folder()} + more).out);
}

fs::path written(const fs::path& path, const std::string& text) {
  std::ofstream(path) << text;
  return path;
}

void check_pose_model() {
  EXPECT_EQ(persons_of().at(0)["persons"].size(), 1U);
  const std::string other = refusal({"pose", "-m", small_model(), noise_folder()});
  EXPECT_TRUE(contains(other, "--model: expected a pose estimator (ViTPose), got a Vision Transformer")) << other;
}

void check_pose_boxes() {
  const fs::path folder = scratch_folder();
  const fs::path all = written(folder / "all.json", R"([{"bbox": [1, 2, 20, 20]}, {"bbox": [3, 4, 20, 9]}])");
  for (const json& image : persons_of({"--boxes", all})) EXPECT_EQ(image["persons"].size(), 2U);
  const fs::path each = scratch_folder();
  written(each / "a.json", R"([{"bbox": [1, 2, 20, 20]}])");
  written(each / "b.json", "[]");
  const std::vector<json> found = persons_of({"--boxes", each});
  EXPECT_EQ(found.at(0)["persons"].at(0)["box"], (json{1.0, 2.0, 21.0, 22.0}));
  EXPECT_EQ(found.at(1)["persons"], json::array());
  const fs::path malformed = written(folder / "wrong.json", "[{}]");
  const auto wrong = run_program({"pose", "-m", poser_folder(), noise_folder() / "a.png", "--boxes", malformed});
  EXPECT_NE(wrong.status, 0);
  EXPECT_TRUE(contains(wrong.err, "boxes: bbox: expected [left, top, width, height]")) << wrong.err;
}

fs::path person_detector() { return fixture("yolos/mid/config.json").parent_path(); }

// A class of objects that the detector finds stands for that of persons.
std::string found_class() {
  static const json found = json_lines(run({"detect", "-m", person_detector(), noise_folder()}).out).at(0);
  return found["detections"].at(0)["label"];
}

std::vector<json> detected_persons(const Arguments& more = {}) {
  return persons_of(Arguments{"--detector", person_detector(), "--classes", found_class()} + more);
}

void check_pose_detector() {
  const fs::path boxes = scratch_folder() / "boxes.json";
  run({"detect", "-m", person_detector(), noise_folder(), "--classes", found_class(), "--coco", boxes});
  const std::vector<json> found = detected_persons(), want = persons_of({"--boxes", boxes});
  ASSERT_EQ(found.size(), want.size());
  size_t persons = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i]["persons"].size(), want[i]["persons"].size());
    for (size_t k = 0; k < found[i]["persons"].size(); ++k, ++persons) {
      const json &got = found[i]["persons"][k]["keypoints"], &wanted = want[i]["persons"][k]["keypoints"];
      for (size_t j = 0; j < got.size(); ++j) EXPECT_NEAR(got[j][2].get<double>(), wanted[j][2].get<double>(), 1e-3);
    }
  }
  EXPECT_GT(persons, 0U);
  const Arguments command{"pose", "-m", poser_folder(), noise_folder(), "--detector"};
  const std::string other = refusal(command + Arguments{poser_folder()});
  EXPECT_TRUE(contains(other, "--detector: expected an object detector (RF-DETR, LW-DETR, YOLOS), got ViTPose"))
      << other;
  const std::string none = refusal(command + Arguments{"none.pth"});
  EXPECT_TRUE(contains(none, "--detector: expected a model that can be opened, got none.pth")) << none;
}

void check_pose_classes() {
  const Arguments all{"--detector", person_detector(), "--threshold", "0"};
  EXPECT_NE(persons_of(all + Arguments{"--classes", "0", "--classes", "1", "--classes", "2", "--classes", "3"}),
            persons_of(all + Arguments{"--classes", found_class()}));
  const std::string none = refusal({"pose", "-m", poser_folder(), noise_folder(), "--detector", person_detector()});
  EXPECT_TRUE(contains(none,
                       "--classes: expected those of persons, of the detector's cat, dog, N/A, traffic light, "
                       "cup, got none of the name person"))
      << none;
}

void check_pose_threshold() {
  EXPECT_EQ(detected_persons({"--threshold", "0.5"}), detected_persons());
  EXPECT_NE(detected_persons({"--threshold", "0"}), detected_persons({"--threshold", "1"}));
}

void check_pose_flip_test() { EXPECT_NE(persons_of({"--flip-test"}), persons_of()); }

void check_pose_dataset() {
  EXPECT_NE(persons_of({"--dataset", "2"}, "experts"), persons_of({}, "experts"));
  const std::string none = refusal({"pose", "-m", poser_folder("experts"), noise_folder(), "--dataset", "3"});
  EXPECT_TRUE(contains(none, "--dataset: expected 0 to 2, got 3")) << none;
}

void check_pose_keypoint_threshold() {
  const fs::path few = scratch_folder(), many = scratch_folder();
  persons_of({"--render", few, "--keypoint-threshold", "100"});
  persons_of({"--render", many, "--keypoint-threshold", "0"});
  EXPECT_NE(image::read_image(few / "a.png").pixels, image::read_image(many / "a.png").pixels);
}

void check_pose_arrays() {
  const fs::path folder = scratch_folder();
  const json found = persons_of({"--arrays", folder}).at(0)["persons"];
  const NpyArray array = read_npy(folder / "a.npy");
  EXPECT_EQ(json(array.shape), (json{1, 5, 3}));
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(json(array.f32[3 + i]), found.at(0)["keypoints"][1][i]);
}

void check_pose_render() {
  const fs::path folder = scratch_folder();
  persons_of({"--render", folder});
  EXPECT_NE(image::read_image(folder / "a.png").pixels, image::read_image(noise_folder() / "a.png").pixels);
}

void check_pose_coco() {
  const fs::path file = scratch_folder() / "results.json";
  const std::vector<json> found = detected_persons({"--coco", file});
  const json results = json::parse(content_of(file)), best = found.at(0)["persons"].at(0);
  ASSERT_EQ(results.size(), found.at(0)["persons"].size() + found.at(1)["persons"].size());
  EXPECT_EQ(results.at(0)["image_id"], "a");
  EXPECT_EQ(results.at(0)["score"], best["score"]);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(results.at(0)["keypoints"].at(6 + i), best["keypoints"].at(2).at(i));
}

void check_pose_exif() {
  const fs::path turned = fixture("image/decode/exif_6.png");
  const auto found = [&](const Arguments& more) {
    return run(Arguments{"pose", "-m", poser_folder(), turned} + more).out;
  };
  EXPECT_NE(found({}), found({"--exif"}));
}

void check_pose_batch() { EXPECT_EQ(persons_of({"--batch", "1"}), persons_of()); }

void check_pose_format() {
  const std::string line =
      run(Arguments{"pose", "-m", poser_folder(), noise_folder() / "a.png", "--format", "text"}).out;
  EXPECT_TRUE(line.starts_with((noise_folder() / "a.png").string() + ": person ")) << line;
}

void check_pose_force() {
  const fs::path folder = scratch_folder();
  std::ofstream(folder / "a.npy") << "notes";
  const Arguments arguments{"pose", "-m", poser_folder(), noise_folder(), "--arrays", folder};
  EXPECT_NE(run_program(arguments).status, 0);
  EXPECT_EQ(content_of(folder / "a.npy"), "notes");
  run(arguments + Arguments{"--force"});
  EXPECT_NE(content_of(folder / "a.npy"), "notes");
}

TEST(PoseCommand, OtherCommandsNameItsModel) {
  const std::string message = refusal({"classify", "-m", poser_folder(), noise_folder()});
  EXPECT_TRUE(contains(message, "a ViTPose, which `vitrail pose`")) << message;
}

}  // namespace

OptionEffects pose_option_effects() {
  return {
      {"pose", "-m,--model", check_pose_model},      {"pose", "--boxes", check_pose_boxes},
      {"pose", "--detector", check_pose_detector},   {"pose", "--classes", check_pose_classes},
      {"pose", "--threshold", check_pose_threshold}, {"pose", "--flip-test", check_pose_flip_test},
      {"pose", "--dataset", check_pose_dataset},     {"pose", "--keypoint-threshold", check_pose_keypoint_threshold},
      {"pose", "--arrays", check_pose_arrays},       {"pose", "--render", check_pose_render},
      {"pose", "--coco", check_pose_coco},           {"pose", "--exif", check_pose_exif},
      {"pose", "--batch", check_pose_batch},         {"pose", "--format", check_pose_format},
      {"pose", "--force", check_pose_force}};
}

}  // namespace vitrail::testing
