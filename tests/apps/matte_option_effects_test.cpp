// SPDX-License-Identifier: Apache-2.0
// The options of `vitrail matte`, and what other commands say to its model.
#include "tests/apps/cli_fixture.h"
#include "tests/apps/option_effects.h"
#include "vitrail/base/npy.h"
#include "vitrail/image/decode.h"
#include "vitrail/image/encode.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string matte_model_folder() { return fixture("vitmatte/windows/config.json").parent_path(); }

// A square of foreground; around it the unknown of a trimap, or nothing.
void write_square(const fs::path& file, const fs::path& photo, uint8_t around) {
  const image::Image size = image::read_image(photo);
  image::Image square = image::make_image(size.width, size.height, 1);
  for (int64_t y = 0; y < square.height; ++y) {
    for (int64_t x = 0; x < square.width; ++x) {
      const int64_t distance = std::max(std::abs(x - square.width / 2), std::abs(y - square.height / 2));
      square.row(y)[x] = distance < 6 ? 255 : distance < 10 ? around : 0;
    }
  }
  image::write_png(file, square);
}

// Files a.png and b.png for the images of noise_folder().
fs::path squares(uint8_t around) {
  const fs::path folder = scratch_folder();
  for (const char* name : {"a.png", "b.png"}) write_square(folder / name, noise_folder() / name, around);
  return folder;
}
const fs::path& trimaps() {
  static const fs::path folder = squares(128);
  return folder;
}
const fs::path& masks() {
  static const fs::path folder = squares(0);
  return folder;
}

std::vector<json> matte_of(const Arguments& more, const Arguments& trimap = {"--trimap", trimaps()}) {
  return json_lines(run(Arguments{"matte", "-m", matte_model_folder(), noise_folder()} + trimap + more).out);
}

fs::path rendered_matte(const Arguments& more) {
  const fs::path folder = scratch_folder();
  matte_of(Arguments{"--render", folder} + more);
  return folder;
}

void check_matte_model() {
  const std::string other = refusal({"matte", "-m", small_model(), noise_folder(), "--trimap", trimaps()});
  EXPECT_TRUE(contains(other, "--model: expected a matting model (ViTMatte), got a Vision Transformer")) << other;
}

void check_matte_format() {
  const std::string text = run({"matte", "-m", matte_model_folder(), noise_folder() / "a.png", "--trimap",
                                trimaps() / "a.png", "--format", "text"})
                               .out;
  EXPECT_TRUE(text.starts_with((noise_folder() / "a.png").string() + ": shape ")) << text;
  EXPECT_TRUE(contains(text, ", mean 0.")) << text;
}

void check_matte_trimap() {
  const std::vector<json> both = matte_of({});
  for (size_t i = 0; i < 2; ++i) {
    const std::string name = i == 0 ? "a.png" : "b.png";
    const json one =
        json_of({"matte", "-m", matte_model_folder(), noise_folder() / name, "--trimap", trimaps() / name});
    EXPECT_EQ(one, both[i]);
    const auto pixels = one["shape"][0].get<double>() * one["shape"][1].get<double>();
    EXPECT_NEAR(one["unknown"].get<double>(), (19 * 19 - 11 * 11) / pixels, 1e-9);
  }
  const Arguments command{"matte", "-m", matte_model_folder(), noise_folder()};
  const std::string none = refusal(command);
  EXPECT_TRUE(contains(none, "--trimap: expected one for the image, or a mask from which it is made")) << none;
  const ProgramResult missing = run_program(command + Arguments{"--trimap", image_folder(1)});
  EXPECT_EQ(missing.status, 1);
  EXPECT_TRUE(contains(missing.err, "--trimap: expected one file b.* in ")) << missing.err;
  const ProgramResult of_another = run_program(command + Arguments{"--trimap", trimaps() / "a.png"});
  EXPECT_TRUE(contains(of_another.err, "trimap: expected the image's size 34×51, got 40×33")) << of_another.err;
  EXPECT_EQ(json_lines(of_another.out).at(0), both[0]) << "the other image has a result";
  EXPECT_TRUE(contains(refusal(command + Arguments{"--trimap", "none.png"}), "none.png"));
}

void check_matte_mask() {
  const json line = matte_of({}, {"--mask", masks()}).at(0);
  EXPECT_GT(line["unknown"].get<double>(), 0.3) << "10 pixels on both sides of the edge";
  const std::string both =
      refusal({"matte", "-m", matte_model_folder(), noise_folder(), "--mask", masks(), "--trimap", trimaps()});
  EXPECT_TRUE(contains(both, "--mask: expected no trimap beside it, got both")) << both;
}

void check_matte_band() {
  EXPECT_EQ(matte_of({"--band", "10"}, {"--mask", masks()}), matte_of({}, {"--mask", masks()}));
  const json line = matte_of({"--band", "2"}, {"--mask", masks()}).at(0);
  EXPECT_NEAR(line["unknown"].get<double>(), (15 * 15 - 7 * 7) / (40.0 * 33), 1e-9);
  const std::string refused =
      refusal({"matte", "-m", matte_model_folder(), noise_folder(), "--trimap", trimaps(), "--band", "2"});
  EXPECT_TRUE(contains(refused, "--band: expected a mask beside it, got a trimap")) << refused;
}

void check_matte_arrays() {
  const fs::path folder = scratch_folder();
  const json line = matte_of({"--arrays", folder, "--raw"}).at(0);
  const NpyArray array = read_npy(folder / "a.npy");
  EXPECT_EQ(json(array.shape), line["shape"]);
  EXPECT_EQ(json(array.f32), line["alpha"]);
}

void check_matte_render() {
  const fs::path folder = rendered_matte({});
  EXPECT_EQ(image::read_image(folder / "a.png").pixels, image::read_image(noise_folder() / "a.png").pixels)
      << "the colours of the cut-out are the image's";
  const ProgramResult refused = run_program(
      {"matte", "-m", matte_model_folder(), noise_folder(), "--trimap", masks(), "--render", masks(), "--force"});
  EXPECT_EQ(refused.status, 1) << "the trimaps are not replaced";
}

void check_matte_colors() {
  const std::string cut_out = content_of(rendered_matte({}) / "a.png"),
                    gray = content_of(rendered_matte({"--colors", "gray"}) / "a.png");
  EXPECT_EQ(cut_out, content_of(rendered_matte({"--colors", "rgba"}) / "a.png"));
  EXPECT_EQ(cut_out.at(25), 6) << "RGBA";
  EXPECT_EQ(gray.at(25), 0) << "grey";
}

void check_matte_raw() {
  EXPECT_FALSE(matte_of({}).at(0).contains("alpha"));
  const json line = matte_of({"--raw"}).at(0);
  EXPECT_EQ(line["alpha"].size(), line["shape"][0].get<size_t>() * line["shape"][1].get<size_t>());
}

void check_matte_exif() {
  const fs::path turned = fixture("image/decode/exif_6.png"), trimap = scratch_folder() / "trimap.png";
  const image::Image size = image::read_image(turned);
  image::Image unknown = image::make_image(size.width, size.height, 1);
  std::ranges::fill(unknown.pixels, uint8_t{128});
  image::write_png(trimap, unknown);
  const Arguments command{"matte", "-m", matte_model_folder(), turned, "--trimap", trimap};
  EXPECT_EQ(run_program(command).status, 0);
  EXPECT_EQ(run_program(command + Arguments{"--exif"}).status, 1) << "the upright image has another size";
}

void check_matte_batch() { EXPECT_EQ(matte_of({"--batch", "1"}), matte_of({})); }

void check_matte_force() {
  const fs::path folder = scratch_folder();
  std::ofstream(folder / "a.npy") << "notes";
  const Arguments arguments{"matte",    "-m",      matte_model_folder(), noise_folder(),
                            "--trimap", trimaps(), "--arrays",           folder};
  EXPECT_NE(run_program(arguments).status, 0);
  EXPECT_EQ(content_of(folder / "a.npy"), "notes");
  run(arguments + Arguments{"--force"});
  EXPECT_NE(content_of(folder / "a.npy"), "notes");
}

TEST(MatteCommand, OtherCommandsNameItsModel) {
  const std::string eval = refusal({"eval", "-m", matte_model_folder(), noise_folder()});
  EXPECT_TRUE(contains(eval, "a model that runs by its task")) << eval;
  const std::string classify = refusal({"classify", "-m", matte_model_folder(), noise_folder()});
  EXPECT_TRUE(contains(classify, "a ViTMatte, which `vitrail matte`")) << classify;
}

}  // namespace

OptionEffects matte_option_effects() {
  return {{"matte", "-m,--model", check_matte_model}, {"matte", "--trimap", check_matte_trimap},
          {"matte", "--mask", check_matte_mask},      {"matte", "--band", check_matte_band},
          {"matte", "--arrays", check_matte_arrays},  {"matte", "--render", check_matte_render},
          {"matte", "--colors", check_matte_colors},  {"matte", "--raw", check_matte_raw},
          {"matte", "--exif", check_matte_exif},      {"matte", "--batch", check_matte_batch},
          {"matte", "--format", check_matte_format},  {"matte", "--force", check_matte_force}};
}

}  // namespace vitrail::testing
