// SPDX-License-Identifier: Apache-2.0
// anomaly: a bank of good images, scores of others, arrays, heat maps, and the evaluation of a set with defects.
#include <random>

#include "tests/apps/option_effects.h"
#include "tests/support/errors.h"
#include "vitrail/image/decode.h"
#include "vitrail/image/encode.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int64_t kSide = 64, kSpot = 24;  // the spot is a quarter and a bit of the image: several patches

// Noise around green, with a red spot at the lower right if it has a defect.
image::Image noise(uint32_t seed, bool defect) {
  image::Image photo = image::make_image(kSide, kSide, 3);
  std::mt19937 random(seed);
  for (int64_t y = 0; y < kSide; ++y) {
    for (int64_t x = 0; x < 3 * kSide; ++x) {
      const bool spot = defect && y >= kSide - kSpot && x >= 3 * (kSide - kSpot);
      photo.row(y)[x] = static_cast<uint8_t>(random() % 60 + (x % 3 == (spot ? 0 : 1) ? 190 : 20));
    }
  }
  return photo;
}

void write(const fs::path& file, const image::Image& photo) {
  fs::create_directories(file.parent_path());
  image::write_png(file, photo);
}

// MVTec AD's layout.
fs::path defect_set() {
  const fs::path root = scratch_folder() / "green";
  image::Image mask = image::make_image(kSide, kSide, 1);
  for (int64_t y = kSide - kSpot; y < kSide; ++y)
    for (int64_t x = kSide - kSpot; x < kSide; ++x) mask.row(y)[x] = 255;
  for (uint32_t i = 0; i < 10; ++i) write(root / "train/good" / (std::to_string(i) + ".png"), noise(i, false));
  for (uint32_t i = 0; i < 4; ++i) {
    const std::string name = std::to_string(i);
    write(root / "test/good" / (name + ".png"), noise(100 + i, false));
    write(root / "test/spot" / (name + ".png"), noise(200 + i, true));
    write(root / "ground_truth/spot" / (name + "_mask.png"), mask);
  }
  return root;
}

std::string fitted(const fs::path& set, const Arguments& more = {}) {
  const std::string bank = (set / "green.bank").string();
  const bool names_model = std::ranges::find(more, "-m") != more.end();
  const Arguments model = names_model ? Arguments{} : Arguments{"-m", small_model()};
  run(Arguments{"anomaly", "fit", set / "train", "-o", bank, "--quiet"} + model + more);
  return bank;
}

TEST(Anomaly, FindsTheDefectAndItsPlace) {
  const fs::path set = defect_set();
  for (const std::string method : {"anomalydino", "patchcore"}) {
    const std::string bank = fitted(set, {"--method", method, "--force"});
    const fs::path arrays = set / method / "arrays", renders = set / method / "renders";
    const Json found =
        json_of({"anomaly", "-m", bank, set / "test/spot/0.png", "--arrays", arrays, "--render", renders});
    EXPECT_EQ(found["anomalous"], true) << method;
    EXPECT_GT(found["farthest"][0], kSide - kSpot) << method;
    EXPECT_GT(found["farthest"][1], kSide - kSpot) << method;
    EXPECT_TRUE(fs::exists(arrays / "0.map.npy"));
    EXPECT_TRUE(fs::exists(arrays / "0.mask.npy"));
    const image::Image render = image::read_image(renders / "0.png");
    EXPECT_EQ(render.width, kSide);
    EXPECT_EQ(render.height, kSide);
    const Json scores = json_of({"eval", "-m", bank, set.string(), "--format", "json", "--quiet"});
    EXPECT_EQ(scores["images"], 8);
    EXPECT_EQ(scores["image_auroc"], 1) << method;
    EXPECT_GT(scores["pixel_auroc"], 0.9) << method;
    EXPECT_GT(scores["pro"], 0.7) << method;
  }
}

// A bank, and an image with a defect.
struct Fitted {
  explicit Fitted(const Arguments& more = {}) : set(defect_set()), bank(fitted(set, more)) {}
  Arguments anomaly(const Arguments& more) const {
    return Arguments{"anomaly", "-m", bank, set / "test/spot/0.png"} + more;
  }
  fs::path set;
  std::string bank;
};

double score_with(const Arguments& fit) { return json_of(Fitted(fit).anomaly({}))["score"]; }

// The file that a run writes into the folder of `option`.
std::string written(const Fitted& of, const std::string& option, const std::string& name, const Arguments& more) {
  const fs::path folder = scratch_folder();
  run(of.anomaly(Arguments{option, folder} + more));
  return content_of(folder / name);
}

void check_model_of_anomaly() {
  const Fitted a, b({"--layers", "0"});
  EXPECT_NE(json_of(a.anomaly({}))["score"], json_of(b.anomaly({}))["score"]);
}

void check_threshold() {
  const Fitted of;
  EXPECT_EQ(json_of(of.anomaly({}))["anomalous"], true);
  EXPECT_EQ(json_of(of.anomaly({"--threshold", "1000"}))["anomalous"], false);
}

void check_pixel_threshold() {
  const Fitted of;
  EXPECT_NE(written(of, "--arrays", "0.mask.npy", {}),
            written(of, "--arrays", "0.mask.npy", {"--pixel-threshold", "9"}));
}

void check_opacity_of_anomaly() {
  const Fitted of;
  const fs::path folder = scratch_folder();
  run(of.anomaly({"--render", folder, "--opacity", "0"}));
  EXPECT_EQ(image::read_image(folder / "0.png").pixels, image::read_image(of.set / "test/spot/0.png").pixels);
  EXPECT_NE(written(of, "--render", "0.png", {}), written(of, "--render", "0.png", {"--opacity", "1"}));
}

void check_format_of_anomaly() {
  const Fitted of;
  const Json found = json_of(of.anomaly({}));
  const std::string line = run(of.anomaly({"--format", "text"})).out;
  EXPECT_TRUE(line.starts_with(found["path"].get<std::string>() + ": score ")) << line;
  EXPECT_TRUE(contains(line, ", anomalous, distance ")) << line;
  const std::string place = str(" farthest ", found["farthest"][0].get<int>(), " ", found["farthest"][1].get<int>());
  EXPECT_TRUE(line.ends_with(place + "\n")) << line;
  EXPECT_TRUE(
      contains(run(of.anomaly({"--format", "text", "--threshold", "1000"})).out, "threshold 1000, not anomalous"));
  const ProgramResult none = run_program({"anomaly", "-m", of.bank, of.set / "none.png", "--format", "text"});
  EXPECT_EQ(none.status, 1);
  EXPECT_EQ(none.out, "");
}

void check_force_of_anomaly() {
  const Fitted of;
  const fs::path folder = scratch_folder();
  std::ofstream(folder / "0.png") << "somebody's work";
  EXPECT_EQ(run_program(of.anomaly({"--render", folder})).status, 2);
  run(of.anomaly({"--render", folder, "--force"}));
  EXPECT_NE(content_of(folder / "0.png"), "somebody's work");
}

// Images run one at a time.
void check_batch_of_anomaly() {
  const Fitted of;
  const auto lines = [&](const std::string& batch) {
    return run({"anomaly", "-m", of.bank, of.set / "test", "--batch", batch}).out;
  };
  EXPECT_EQ(lines("1"), lines("3"));
}

void check_batch_of_fit() {
  EXPECT_EQ(content_of(Fitted({"--batch", "1"}).bank), content_of(Fitted({"--batch", "4"}).bank));
}

void check_format_of_fit() {
  const fs::path set = defect_set();
  const Arguments fit{"anomaly", "fit", set / "train", "-m", small_model(), "-o", set / "bank", "--quiet", "--format"};
  EXPECT_EQ(json_of(fit + Arguments{"json"})["images"], 10);
  EXPECT_TRUE(contains(run(fit + Arguments{"table", "--force"}).out, "pixel threshold"));
}

void check_force_of_fit() {
  const fs::path set = defect_set();
  const Arguments fit{"anomaly", "fit", set / "train", "-m", small_model(), "-o", set / "bank", "--quiet"};
  std::ofstream(set / "bank") << "somebody's work";
  EXPECT_EQ(run_program(fit).status, 2);
  EXPECT_EQ(content_of(set / "bank"), "somebody's work");
  run(fit + Arguments{"--force"});
  EXPECT_NE(content_of(set / "bank"), "somebody's work");
}

// The option changes the score.
OptionEffect changing(const std::string& option, const Arguments& with, const Arguments& without = {}) {
  return {"anomaly fit", option, [=] {
            EXPECT_NE(score_with(with), score_with(without));
            EXPECT_EQ(score_with(with), score_with(with));
          }};
}

TEST(Anomaly, BanksFindTheirModel) {
  const fs::path set = defect_set(), model = set / "model", photo = set / "test/spot/0.png";
  fs::copy(small_model(), model, fs::copy_options::recursive);
  const std::string bank = (set / "bank").string();
  run({"anomaly", "fit", (set / "train").string(), "-m", model.string(), "-o", bank, "--quiet"});
  const std::string line = run({"anomaly", "-m", bank, photo}).out;
  const fs::path moved = scratch_folder();
  fs::rename(model, moved / "model");
  EXPECT_TRUE(contains(refusal({"anomaly", "-m", bank, photo}),
                       bank + ": expected its model at " + (set / "model").string() + ", got nothing there"));
  fs::rename(bank, moved / "bank");
  EXPECT_EQ(run({"anomaly", "-m", moved / "bank", photo}).out, line);
  fs::copy(fixture("models/timm_avg") / "model.safetensors", moved / "model/model.safetensors",
           fs::copy_options::overwrite_existing);
  EXPECT_TRUE(
      contains(refusal({"anomaly", "-m", moved / "bank", photo}), "got others; vitrail anomaly fit makes a bank"));
}

TEST(Anomaly, ErrorsSayTheNextStep) {
  const fs::path set = defect_set();
  const std::string bank = fitted(set), photo = (set / "test/spot/0.png").string();
  EXPECT_ERROR(refusal({"anomaly", "-m", small_model(), photo}), "vitrail: error: --model", "a Vision Transformer\n");
  EXPECT_TRUE(contains(refusal({"inspect", bank}), "vitrail inspect takes its model, " + small_model()));
  EXPECT_ERROR(refusal({"eval", "-m", bank, set / "train"}), "vitrail: error: " + (set / "train").string(),
               "10 good images and 0 with a defect\n");
  fs::remove(set / "ground_truth/spot/2_mask.png");
  EXPECT_TRUE(contains(refusal({"eval", "-m", bank, set}), (set / "test/spot/2.png").string() + ": expected a mask "));
}

}  // namespace

OptionEffects anomaly_option_effects() {
  return {{"anomaly", "-m,--model", check_model_of_anomaly},
          {"anomaly", "--threshold", check_threshold},
          {"anomaly", "--pixel-threshold", check_pixel_threshold},
          {"anomaly", "--opacity", check_opacity_of_anomaly},
          {"anomaly", "--arrays", check_pixel_threshold},
          {"anomaly", "--render", check_opacity_of_anomaly},
          {"anomaly", "--format", check_format_of_anomaly},
          {"anomaly", "--force", check_force_of_anomaly},
          {"anomaly", "--batch", check_batch_of_anomaly},
          changing("-m,--model", {}, {"-m", fixture("models/timm_avg").string()}),
          {"anomaly fit", "-o,--output", check_model_of_anomaly},
          changing("--method", {"--method", "patchcore"}),
          changing("--layers", {"--layers", "0"}),
          changing("--coreset", {"--coreset", "0.02"}),
          changing("--seed", {"--coreset", "0.02", "--seed", "1"}, {"--coreset", "0.02"}),
          changing("--rotations", {"--rotations", "8"}),
          changing("--mask", {"-m", "imagenet-tiny", "--mask", "all"}, {"-m", "imagenet-tiny"}),
          changing("--image-size", {"--image-size", "48"}),
          {"anomaly fit", "--force", check_force_of_fit},
          {"anomaly fit", "--batch", check_batch_of_fit},
          {"anomaly fit", "--format", check_format_of_fit}};
}

}  // namespace vitrail::testing
