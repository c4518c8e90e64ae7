// SPDX-License-Identifier: Apache-2.0
// eval of a depth estimator, and what eval refuses for models that are no classifiers.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "tests/apps/cli_fixture.h"
#include "tests/apps/option_effects.h"
#include "tests/support/sam_fixture.h"
#include "vitrail/base/npy.h"
#include "vitrail/image/encode.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

fs::path evaluated_model(const std::string& name) { return fixture("depth/" + name + "/config.json").parent_path(); }

// The message for a wrong use of options.
std::string misuse_of_eval(const Arguments& arguments) {
  const ProgramResult result = run_program(arguments);
  EXPECT_EQ(result.status, 2) << ::testing::PrintToString(arguments) << result.err;
  return result.err;
}

// Two images, and depth of each from the model's map by `depth_of`, which chooses the unit.
template <class Function>
fs::path depth_set(const std::string& model, const Function& write_depth) {
  const fs::path set = scratch_folder();
  fs::create_directories(set / "images");
  fs::create_directories(set / "depth");
  for (const char* name : {"a", "b"})
    fs::copy_file(noise_folder() / str(name, ".png"), set / "images" / str(name, ".png"));
  const fs::path maps = scratch_folder();
  run({"depth", "-m", evaluated_model(model), set / "images", "--arrays", maps});
  for (const char* name : {"a", "b"}) write_depth(set / "depth" / name, read_npy(maps / str(name, ".npy")));
  return set;
}

json evaluated(const std::string& model, const fs::path& set) {
  return json::parse(run({"eval", "-m", evaluated_model(model), set, "--format", "json"}).out);
}

void write_values(const fs::path& path, const NpyArray& map, const std::vector<float>& values) {
  write_npy(path.string() + ".npy", map.shape, values.data());
}

// Metres are compared as they are.  The first image has an unknown pixel.
TEST(EvalDepth, MetricMapsAreCompared) {
  const fs::path set = depth_set("metric", [](const fs::path& path, const NpyArray& map) {
    std::vector<float> depth = map.f32;
    for (float& value : depth) value *= path.filename() == "a" ? 0.75F : 0.9F;
    if (path.filename() == "a") depth.front() = 0;
    write_values(path, map, depth);
  });
  const json report = evaluated("metric", set);
  EXPECT_EQ(report["images"], 2);
  EXPECT_EQ(report["aligned"], false);
  EXPECT_NEAR(report["abs_rel"], (1 / 0.75 - 1 + 1 / 0.9 - 1) / 2, 1e-5);
  EXPECT_EQ(report["delta1"], 0.5) << "the mean of both images";
  const size_t pixels = read_npy(set / "depth/a.npy").f32.size() + read_npy(set / "depth/b.npy").f32.size();
  EXPECT_EQ(report["pixels"], pixels - 1);
  const std::string table = run({"eval", "-m", evaluated_model("metric"), set}).out;
  EXPECT_TRUE(table.starts_with("images       2\npixels       ")) << table;
}

TEST(EvalDepth, PngIsInMillimetres) {
  const fs::path set = depth_set("metric", [](const fs::path& path, const NpyArray& map) {
    image::Gray16 grey{map.shape[1], map.shape[0], {}};
    for (const float value : map.f32) grey.values.push_back(static_cast<uint16_t>(std::lround(value * 1000)));
    const std::vector<uint8_t> bytes = image::encode_png(grey);
    std::ofstream(path.string() + ".png", std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  });
  const json report = evaluated("metric", set);
  EXPECT_LT(report["rmse"], 0.0006) << "half a millimetre of rounding";
  EXPECT_EQ(report["delta1"], 1.0);
}

// Relative maps are inverse depth with any scale and offset for each image.
TEST(EvalDepth, RelativeMapsAreAligned) {
  const fs::path set = depth_set("relative", [](const fs::path& path, const NpyArray& map) {
    std::vector<float> depth;
    for (const float value : map.f32) depth.push_back(1 / (path.filename() == "a" ? value + 0.5F : 3 * value + 0.1F));
    write_values(path, map, depth);
  });
  const json report = evaluated("relative", set);
  EXPECT_EQ(report["aligned"], true);
  EXPECT_LT(report["abs_rel"], 1e-4);
  EXPECT_EQ(report["delta1"], 1.0);
}

TEST(EvalDepth, SaysWhatIsWrongWithASet) {
  const auto write_all = [](const fs::path& path, const NpyArray& map) { write_values(path, map, map.f32); };
  const auto refused = [](const fs::path& set) { return refusal({"eval", "-m", evaluated_model("metric"), set}); };
  const fs::path missing = depth_set("metric", write_all), other = depth_set("metric", write_all);
  fs::remove(missing / "depth/b.npy");
  EXPECT_TRUE(contains(refused(missing), "b.png: expected its depth, ")) << refused(missing);
  write_npy(other / "depth/a.npy", std::vector<int64_t>{1, 2}, std::vector<float>{1, 2}.data());
  EXPECT_TRUE(contains(refused(other), "the image's height and width, got [1, 2]")) << refused(other);
  const fs::path unknown = depth_set("metric", [](const fs::path& path, const NpyArray& map) {
    write_values(path, map, std::vector<float>(map.f32.size()));
  });
  EXPECT_TRUE(contains(refused(unknown), "expected a pixel of known depth, got none")) << refused(unknown);
  const fs::path grey = depth_set("metric", [](const fs::path& path, const NpyArray& map) {
    image::write_png(path.string() + ".png", image::make_image(map.shape[1], map.shape[0], 1));
  });
  EXPECT_TRUE(contains(refused(grey), "a pixel of known depth")) << refused(grey);
  image::Image white = image::make_image(2, 2, 1);
  white.pixels.assign(4, 255);
  image::write_png(grey / "depth/a.png", white);
  EXPECT_TRUE(contains(refused(grey), "16-bit grey in millimetres, got values up to 255")) << refused(grey);
  EXPECT_TRUE(contains(refused(scratch_folder()), "images")) << refused(scratch_folder());
}

// One rule for all models that are no classifiers: nothing is ignored.
TEST(EvalOptions, ModelsThatAreNoClassifiersRefuseTheirs) {
  const fs::path bank = scratch_folder() / "a.bank";
  run({"anomaly", "fit", "-m", small_model(), noise_folder(), "-o", bank, "--quiet"});
  const std::tuple<fs::path, std::string, std::string> models[] = {
      {bank, "a bank of anomaly detection", "finds anomalies"},
      {sam_fixture("padded_windows").model, "Segment Anything", "segments objects"},
      {evaluated_model("relative"), "a depth estimator", "estimates depth"}};
  for (const auto& [model, name, action] : models) {
    for (const Arguments& more : {Arguments{"--image-size", "64"}, {"--mean", "0.5"}, {"--crop-pct", "1"}}) {
      const std::string message = misuse_of_eval(Arguments{"eval", "-m", model, noise_folder()} + more);
      EXPECT_TRUE(contains(message, more[0]) && contains(message, "does not apply to " + name)) << message;
    }
    for (const Arguments& more : {Arguments{"--zeroshot"}, {"--logits", scratch_folder() / "a.npy"}}) {
      const std::string message = misuse_of_eval(Arguments{"eval", "-m", model, noise_folder()} + more);
      EXPECT_TRUE(contains(message, more[0] + ": belongs to a classifier; the model " + action)) << message;
    }
  }
  const std::string split = misuse_of_eval({"eval", "-m", bank, noise_folder(), "--split", "test"});
  EXPECT_TRUE(contains(split, "--split: belongs to a classifier")) << split;
}

}  // namespace
}  // namespace vitrail::testing
