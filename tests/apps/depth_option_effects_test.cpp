// SPDX-License-Identifier: Apache-2.0
// The options of `vitrail depth`, and what other commands say to its model.
#include <array>
#include <cstring>

#include "tests/apps/cli_fixture.h"
#include "tests/apps/option_effects.h"
#include "vitrail/base/npy.h"
#include "vitrail/image/decode.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string depth_model_folder(const std::string& name = "relative") {
  return fixture("depth/" + name + "/config.json").parent_path();
}

// Runs on two images; the results that the option changes are in `out`.
std::vector<json> depth_of(const Arguments& more, const std::string& model = "relative") {
  return json_lines(run(Arguments{"depth", "-m", depth_model_folder(model), noise_folder()} + more).out);
}

fs::path rendered(const Arguments& more, const std::string& model = "relative") {
  const fs::path folder = scratch_folder();
  depth_of(Arguments{"--render", folder} + more, model);
  return folder;
}

void check_depth_model() {
  EXPECT_EQ(depth_of({}).at(0)["unit"], "relative");
  EXPECT_EQ(depth_of({}, "metric").at(0)["unit"], "m");
  const std::string other = refusal({"depth", "-m", small_model(), noise_folder()});
  EXPECT_TRUE(contains(other, "--model: expected a depth estimator (Depth Anything, DPT), got a Vision Transformer"))
      << other;
}

void check_depth_format() {
  const json line = depth_of({}).at(0);
  const std::string text = run({"depth", "-m", depth_model_folder(), noise_folder() / "a.png", "--format", "text"}).out;
  const std::string size = str(line["shape"][0].get<int>(), " ", line["shape"][1].get<int>());
  EXPECT_TRUE(text.starts_with((noise_folder() / "a.png").string() + ": shape " + size + ", min ")) << text;
  EXPECT_TRUE(text.ends_with(", unit relative\n")) << text;
}

void check_depth_arrays() {
  const fs::path folder = scratch_folder();
  const json line = depth_of({"--arrays", folder, "--raw"}).at(0);
  const NpyArray array = read_npy(folder / "a.npy");
  EXPECT_EQ(json(array.shape), line["shape"]);
  EXPECT_EQ(json(array.f32), line["depth"]);
}

void check_depth_render() {
  const fs::path folder = rendered({});
  const image::Image photo = image::read_image(noise_folder() / "a.png"), map = image::read_image(folder / "a.png");
  EXPECT_EQ(map.width, photo.width);
  EXPECT_EQ(map.height, photo.height);
}

void check_depth_colors() {
  const std::string heat = content_of(rendered({}) / "a.png"),
                    gray = content_of(rendered({"--colors", "gray"}) / "a.png");
  EXPECT_EQ(heat, content_of(rendered({"--colors", "heat"}) / "a.png"));
  EXPECT_NE(heat, gray);
  EXPECT_EQ(gray.at(24), 8);
  EXPECT_EQ(content_of(rendered({"--colors", "gray16"}) / "a.png").at(24), 16);
}

void check_depth_common_scale() {
  const fs::path own = rendered({}), common = rendered({"--common-scale"});
  EXPECT_TRUE(content_of(own / "a.png") != content_of(common / "a.png") ||
              content_of(own / "b.png") != content_of(common / "b.png"));
}

void check_depth_opacity() {
  const image::Image photo = image::read_image(noise_folder() / "a.png");
  EXPECT_EQ(image::read_image(rendered({"--opacity", "0"}) / "a.png").pixels, photo.pixels);
  EXPECT_NE(image::read_image(rendered({}) / "a.png").pixels, photo.pixels);
}

void check_depth_raw() {
  EXPECT_FALSE(depth_of({}).at(0).contains("depth"));
  const json line = depth_of({"--raw"}).at(0);
  EXPECT_EQ(line["depth"].size(), line["shape"][0].get<size_t>() * line["shape"][1].get<size_t>());
}

void check_depth_exif() {
  const fs::path turned = fixture("image/decode/exif_6.png");
  const auto shape = [&](const Arguments& more) {
    return json_lines(run(Arguments{"depth", "-m", depth_model_folder("metric"), turned} + more).out).at(0)["shape"];
  };
  const json lying = shape({}), upright = shape({"--exif"});
  EXPECT_EQ(lying, (json{upright[1], upright[0]}));
}

void check_depth_batch() { EXPECT_EQ(depth_of({"--batch", "1"}), depth_of({})); }

void check_depth_force() {
  const fs::path folder = scratch_folder();
  std::ofstream(folder / "a.npy") << "notes";
  const Arguments arguments{"depth", "-m", depth_model_folder(), noise_folder(), "--arrays", folder};
  const ProgramResult refused = run_program(arguments);
  EXPECT_NE(refused.status, 0);
  EXPECT_EQ(content_of(folder / "a.npy"), "notes");
  run(arguments + Arguments{"--force"});
  EXPECT_NE(content_of(folder / "a.npy"), "notes");
}

std::string point_cloud(const Arguments& more) {
  const fs::path folder = scratch_folder();
  depth_of(Arguments{"--ply", folder} + more, "metric");
  return content_of(folder / "a.ply");
}

// The first point, behind the header.
std::array<float, 3> first_point(const std::string& ply) {
  const std::string end = "end_header\n";
  std::array<float, 3> point{};
  std::memcpy(point.data(), ply.data() + ply.find(end) + end.size(), sizeof(point));
  return point;
}

// A point for each pixel of the metric map.
void check_depth_ply() {
  const json line = depth_of({}, "metric").at(0);
  const std::string ply = point_cloud({"--focal", "20"});
  const int64_t pixels = line["shape"][0].get<int64_t>() * line["shape"][1].get<int64_t>();
  EXPECT_TRUE(contains(ply, str("\nelement vertex ", pixels, "\n")));
  EXPECT_EQ(std::ssize(ply.substr(ply.find("end_header\n") + 11)), 15 * pixels);
  const auto refused = [](const std::string& model, const Arguments& more) {
    return refusal(Arguments{"depth", "-m", depth_model_folder(model), noise_folder(), "--ply", scratch_folder()} +
                   more);
  };
  const std::string relative = refused("relative", {"--fov", "60"}), neither = refused("metric", {}),
                    both = refused("metric", {"--fov", "60", "--focal", "20"});
  EXPECT_TRUE(contains(relative, "--ply: expected a metric model")) << relative;
  EXPECT_TRUE(contains(neither, "--ply: expected either fov in degrees or focal in pixels, of the camera, got neither"))
      << neither;
  EXPECT_TRUE(contains(both, "got both")) << both;
}

void check_depth_focal() {
  const std::array<float, 3> near = first_point(point_cloud({"--focal", "20"})),
                             far = first_point(point_cloud({"--focal", "40"}));
  EXPECT_EQ(near[2], far[2]);
  EXPECT_EQ(near[0], 2 * far[0]);
  const std::string message = refusal({"depth", "-m", depth_model_folder("metric"), noise_folder(), "--focal", "20"});
  EXPECT_TRUE(contains(message, "--focal: expected a point cloud (ply)")) << message;
}

// 90° have the focal length of half the width.
void check_depth_fov() {
  const int64_t width = image::read_image(noise_folder() / "a.png").width;
  const std::array<float, 3> got = first_point(point_cloud({"--fov", "90"})),
                             want = first_point(point_cloud({"--focal", str(static_cast<double>(width) / 2)}));
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(got[i], want[i], 1e-5);
}

TEST(DepthCommand, OtherCommandsNameItsModel) {
  const std::string message = refusal({"classify", "-m", depth_model_folder(), noise_folder()});
  EXPECT_TRUE(contains(message, "a Depth Anything depth estimator, which `vitrail depth`")) << message;
}

}  // namespace

OptionEffects depth_option_effects() {
  return {{"depth", "-m,--model", check_depth_model},
          {"depth", "--arrays", check_depth_arrays},
          {"depth", "--render", check_depth_render},
          {"depth", "--colors", check_depth_colors},
          {"depth", "--common-scale", check_depth_common_scale},
          {"depth", "--opacity", check_depth_opacity},
          {"depth", "--raw", check_depth_raw},
          {"depth", "--ply", check_depth_ply},
          {"depth", "--fov", check_depth_fov},
          {"depth", "--focal", check_depth_focal},
          {"depth", "--exif", check_depth_exif},
          {"depth", "--batch", check_depth_batch},
          {"depth", "--format", check_depth_format},
          {"depth", "--force", check_depth_force}};
}

}  // namespace vitrail::testing
