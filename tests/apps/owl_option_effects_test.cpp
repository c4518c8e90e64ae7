// SPDX-License-Identifier: Apache-2.0
// The options of `vitrail detect` for labels and examples.
#include <set>

#include "tests/apps/cli_fixture.h"
#include "tests/apps/option_effects.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

fs::path owl_folder() { return fixture("owl/v2/config.json").parent_path(); }

// Runs on two images, whose objects it returns.
std::vector<json> objects_by(const Arguments& more) {
  std::vector<json> found;
  for (const json& line :
       json_lines(run(Arguments{"detect", "-m", owl_folder(), noise_folder(), "--threshold", "0"} + more).out))
    found.push_back(line["detections"]);
  return found;
}

std::set<std::string> labels_in(const json& found) {
  std::set<std::string> labels;
  for (const json& each : found) labels.insert(each["label"].get<std::string>());
  return labels;
}

void check_detect_labels() {
  const std::vector<json> found = objects_by({"--labels", "a cat,grass", "--per-label"});
  EXPECT_EQ(labels_in(found.at(0)), (std::set<std::string>{"a cat", "grass"}));
  EXPECT_EQ(objects_by({"--labels", "a cat", "--labels", "grass", "--per-label"}), found);
  const fs::path file = scratch_folder() / "labels.txt";
  std::ofstream(file) << "a cat\ngrass\n";
  EXPECT_EQ(objects_by({"--labels", file, "--per-label"}), found);
  const Arguments command{"detect", "-m", owl_folder(), noise_folder()};
  const std::string none = refusal(command);
  EXPECT_TRUE(contains(none, "--labels: expected what to find, such as \"cat,remote control\", or an example")) << none;
  const fs::path yolos = fixture("yolos/mid/config.json").parent_path();
  const ProgramResult other = run_program({"detect", "-m", yolos, noise_folder(), "--labels", "cat"});
  EXPECT_EQ(other.status, 2);
  EXPECT_TRUE(contains(other.err, "--labels: does not apply to YOLOS")) << other.err;
  const ProgramResult classes = run_program(command + Arguments{"--labels", "cat", "--classes", "cat"});
  EXPECT_TRUE(contains(classes.err, "--classes: does not apply to OWLv2")) << classes.err;
}

void check_detect_template() {
  EXPECT_EQ(objects_by({"--labels", "cat", "--template", "{}"}), objects_by({"--labels", "cat"}));
  EXPECT_NE(objects_by({"--labels", "cat", "--template", "a {}"}), objects_by({"--labels", "cat"}));
}

void check_detect_per_label() {
  const Arguments labels{"--labels", "a cat,grass"};
  EXPECT_EQ(objects_by(labels).at(0).size(), 36U);
  EXPECT_EQ(objects_by(labels + Arguments{"--per-label"}).at(0).size(), 72U);
}

void check_detect_like() {
  const fs::path a = noise_folder() / "a.png", b = noise_folder() / "b.png", folder = scratch_folder();
  const std::vector<json> like_a = objects_by({"--like", a}), like_b = objects_by({"--like", b});
  EXPECT_EQ(labels_in(like_a.at(0)), std::set<std::string>{"example"});
  EXPECT_NE(like_a, like_b);
  fs::copy_file(b, folder / "a.png");
  fs::copy_file(a, folder / "b.png");
  EXPECT_EQ(objects_by({"--like", folder}), (std::vector<json>{like_b.at(0), like_a.at(1)})) << "one for each image";
  const fs::path yolos = fixture("yolos/mid/config.json").parent_path();
  const ProgramResult other = run_program({"detect", "-m", yolos, a, "--like", b});
  EXPECT_EQ(other.status, 2);
  EXPECT_TRUE(contains(other.err, "--like: does not apply to YOLOS")) << other.err;
  const std::string both = refusal({"detect", "-m", owl_folder(), a, "--like", b, "--labels", "cat"});
  EXPECT_TRUE(contains(both, "--like: expected no labels beside it")) << both;
}

void check_detect_like_box() {
  const Arguments example{"--like", noise_folder() / "a.png"};
  EXPECT_NE(objects_by(example + Arguments{"--like-box", "0,0,6,6"}),
            objects_by(example + Arguments{"--like-box", "20,20,36,36"}));
  const std::string alone =
      refusal({"detect", "-m", owl_folder(), noise_folder() / "a.png", "--labels", "cat", "--like-box", "0,0,6,6"});
  EXPECT_TRUE(contains(alone, "--like-box: expected an example (like) beside it")) << alone;
}

}  // namespace

OptionEffects owl_option_effects() {
  return {{"detect", "--labels", check_detect_labels},
          {"detect", "--template", check_detect_template},
          {"detect", "--per-label", check_detect_per_label},
          {"detect", "--like", check_detect_like},
          {"detect", "--like-box", check_detect_like_box}};
}

}  // namespace vitrail::testing
