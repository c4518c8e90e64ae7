// SPDX-License-Identifier: Apache-2.0
// Hiera and SAM 2 on the command line: fixtures of tools/golden/hiera.py and sam2.py.
#include <algorithm>

#include "tests/apps/cli_fixture.h"
#include "tests/support/sam_fixture.h"
#include "vitrail/base/npy.h"
#include "vitrail/image/encode.h"

namespace vitrail {
namespace {

namespace fs = std::filesystem;
using testing::contains;
using testing::run_program;

std::string hiera_model(const std::string& name) {
  return testing::fixture("hiera/" + name + "/config.json").parent_path().string();
}

// The fixture's image as a file.
std::string photo_of(const testing::Golden& golden, const std::string& name) {
  const Tensor pixels = golden["image"].contiguous();
  image::Image photo = image::make_image(pixels.size(1), pixels.size(0), 3);
  std::copy_n(pixels.data<uint8_t>(), pixels.numel(), photo.pixels.data());
  const fs::path file = testing::scratch_folder() / (name + ".png");
  image::write_png(file, photo);
  return file.string();
}

Tensor row_of(const std::string& file) {
  const NpyArray rows = read_npy(file);
  return Tensor::from<float>({std::ssize(rows.f32)}, rows.f32);
}

TEST(HieraCommands, ClassifyAndEmbedGiveTheReferencesValues) {
  const std::string model = hiera_model("transformers");
  const testing::Golden golden = testing::read_golden(fs::path(model) / "golden.safetensors");
  const std::string photo = photo_of(golden, "photo");
  const std::string logits = (testing::scratch_folder() / "logits.npy").string();
  const auto classes = run_program({"classify", "-m", model, photo, "--top", "1", "--logits", logits});
  ASSERT_EQ(classes.status, 0) << classes.err;
  EXPECT_TRUE(contains(classes.out, "animal 3")) << classes.out;
  EXPECT_TRUE(testing::close(row_of(logits), golden["logits"], 1e-3));
  const std::string features = (testing::scratch_folder() / "features.npy").string();
  const auto embedding = run_program({"embed", "-m", model, photo, "-o", features});
  ASSERT_EQ(embedding.status, 0) << embedding.err;
  EXPECT_TRUE(testing::close(row_of(features), golden["features"], 1e-3));
  const auto others = run_program({"classify", "-m", model, photo, "--labels", photo});
  EXPECT_EQ(others.status, 1);
  EXPECT_TRUE(contains(others.err, "threads and precision alone, for Hiera")) << others.err;
  const auto size = run_program({"classify", "-m", model, photo, "--image-size", "96"});
  EXPECT_TRUE(contains(size.err, "--image-size: does not apply to Hiera")) << size.err;
  const auto tokens = run_program({"embed", "-m", model, photo, "-o", features, "--force", "--tokens", "patch"});
  EXPECT_TRUE(contains(tokens.err, "the pooled ones of the last block")) << tokens.err;
}

TEST(HieraCommands, InspectShowsTheStagesOfSam2) {
  const testing::SamFixture fixture = testing::sam_fixture("sam2");
  const auto summary = run_program({"inspect", fixture.model.string()});
  ASSERT_EQ(summary.status, 0) << summary.err;
  EXPECT_TRUE(contains(summary.out, "segment_anything, second generation")) << summary.out;
  EXPECT_TRUE(
      contains(summary.out, "Hiera, width 8 to 32, depths 1 2 3 1, heads 1 2 2 4, windows 8 6 4 2, global blocks 4"))
      << summary.out;
  const auto trace = run_program({"inspect", fixture.model.string(), "--trace", "random"});
  for (const char* name : {"image_encoder.trunk.blocks.6", "image_encoder.neck", "object_score_logits"})
    EXPECT_TRUE(contains(trace.out, name)) << name;
}

TEST(HieraCommands, ExplainIsForTheFirstGeneration) {
  const testing::SamFixture fixture = testing::sam_fixture("sam2");
  const fs::path photo = testing::scratch_folder() / "photo.png";
  image::write_png(photo, fixture.image);
  const auto page = run_program({"explain", "-m", fixture.model.string(), photo.string(), "-o",
                                 (testing::scratch_folder() / "page.html").string()});
  EXPECT_EQ(page.status, 1);
  EXPECT_TRUE(contains(page.err, "or one of Segment Anything, got SAM 2")) << page.err;
}

}  // namespace
}  // namespace vitrail
