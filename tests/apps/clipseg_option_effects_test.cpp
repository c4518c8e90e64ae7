// SPDX-License-Identifier: Apache-2.0
// The options of `vitrail segment` for texts, and inspect, bench and convert with its model.
#include "tests/apps/cli_fixture.h"
#include "tests/apps/option_effects.h"
#include "tests/apps/segment_runs.h"
#include "tests/apps/shell.h"
#include "vitrail/base/npy.h"
#include "vitrail/image/decode.h"
#include "vitrail/tasks/clipseg/clipseg_model.h"
#include "vitrail/weights/checkpoint.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string clipseg_folder() { return fixture("clipseg/plain/config.json").parent_path(); }

std::vector<json> text_masks(const Arguments& more) {
  return json_lines(run(Arguments{"segment", "-m", clipseg_folder(), noise_folder(), "--text", "a cat"} + more).out);
}

fs::path rendered_texts(const Arguments& more) {
  const fs::path folder = scratch_folder();
  text_masks(Arguments{"--render", folder} + more);
  return folder / "a.png";
}

void check_each_text() {
  const fs::path arrays = scratch_folder();
  const json line = text_masks({"--text", "a dog, or two", "--arrays", arrays}).at(0);
  ASSERT_EQ(line["texts"].size(), 2u);
  EXPECT_EQ(line["texts"][0]["text"], "a cat");
  EXPECT_EQ(line["texts"][1]["text"], "a dog, or two") << "a comma is a part of the text";
  EXPECT_EQ(line["texts"][0], text_masks({}).at(0)["texts"][0]) << "each text is by itself";
  const NpyArray array = read_npy(arrays / "a.npy");
  EXPECT_EQ(json(array.shape), (json{2, line["shape"][0], line["shape"][1]}));
  EXPECT_EQ(*std::max_element(array.f32.begin(), array.f32.begin() + std::ssize(array.f32) / 2),
            line["texts"][0]["max"].get<float>());
  const std::string none = refusal({"segment", "-m", clipseg_folder(), noise_folder()});
  EXPECT_TRUE(contains(none, "--text: expected what a mask is of, such as \"a cat\", got none")) << none;
}

void check_text_threshold() {
  const auto area = [](const Arguments& more) { return text_masks(more).at(0)["texts"][0]["area"].get<int64_t>(); };
  EXPECT_EQ(area({"--threshold", "0.5"}), area({}));
  EXPECT_EQ(area({"--threshold", "1"}), 0);
  EXPECT_GT(area({"--threshold", "0.2"}), area({}));
}

void check_text_heat() {
  const image::Image photo = image::read_image(noise_folder() / "a.png"), masks = image::read_image(rendered_texts({}));
  EXPECT_EQ(masks.width, photo.width);
  EXPECT_EQ(image::read_image(rendered_texts({"--opacity", "0", "--heat"})).pixels, photo.pixels);
  EXPECT_GT(image::read_image(rendered_texts({"--heat", "--text", "a dog"})).width, 2 * photo.width);
}

void check_text_raw() {
  EXPECT_FALSE(text_masks({}).at(0)["texts"][0].contains("probabilities"));
  const json line = text_masks({"--raw"}).at(0);
  EXPECT_EQ(line["texts"][0]["probabilities"].size(), line["shape"][0].get<size_t>() * line["shape"][1].get<size_t>());
}

TEST(SegmentOfTexts, HasTheMaskOfEachOnRequest) {
  EXPECT_FALSE(text_masks({}).at(0)["texts"][0].contains("rle"));
  EXPECT_TRUE(text_masks({"--rle"}).at(0)["texts"][0].contains("rle"));
}

TEST(SegmentOfTexts, OptionsOfOtherModelsAreRefused) {
  const auto refused = [](const Arguments& arguments, const std::string& message) {
    const ProgramResult result = run_program(Arguments{"segment", noise_folder() / "a.png"} + arguments);
    EXPECT_EQ(result.status, 2) << message;
    EXPECT_TRUE(contains(result.err, message)) << result.err;
  };
  refused({"-m", exact_windows().model, "--text", "a cat"},
          "--text: belongs to another segmenter; the model is Segment Anything");
  refused({"-m", clipseg_folder(), "--text", "a cat", "--legend"}, "--legend: does not apply to CLIPSeg");
  refused({"-m", fixture("semantic/linear/config.json").parent_path(), "--text", "a cat"},
          "--text: does not apply to a semantic segmenter");
  refused({"-m", clipseg_folder(), "--point", "1,2"}, "--point: belongs to Segment Anything; the model is CLIPSeg");
}

TEST(ToolsWithClipSeg, InspectHasTheImageTowerAndTheDecoder) {
  const std::string out = inspected({"-m", clipseg_folder()});
  EXPECT_TRUE(contains(out, "architecture  clipseg\n") && contains(out,
                                                                   ", huggingface_clipseg keys\ninput         images "
                                                                   "[1, 3, 64, 64]\ninput         text [1, 10]\n"
                                                                   "output        logits [1, 64, 64]\n"))
      << out;
  const std::string keys = inspected({"-m", clipseg_folder(), "--keys"});
  for (const std::string name : {"decoder.layers.0.self_attn.q_proj.weight", "clip.vision_model.pre_layrnorm.weight"})
    EXPECT_TRUE(contains(keys, "\n" + name + " ")) << name;
}

// The values are those of the task.
TEST(ToolsWithClipSeg, TraceOfAnImageHasTheLogits) {
  const fs::path image = noise_folder() / "a.png";
  const std::string all = inspected({"-m", clipseg_folder(), "--trace", image});
  for (const std::string name : {"text", "vision.blocks.4.mlp.fc2", "decoder.layers.2.norm2", "decoder"})
    EXPECT_TRUE(contains(all, "\n" + name + " ")) << name << all;
  const auto opened = tasks::open_model(clipseg_folder());
  const tasks::ClipSegModel& model = tasks::as_model<tasks::ClipSegModel>(*opened);
  const Tensor want = model.logits(*model.encode(image::read_image(image)), model.embed({"a photo"}));
  for (const auto& [slice, batch] : {std::pair{"logits[0, 5, 7]", "1"}, {"logits[1, 5, 7]", "2"}}) {
    const std::string out = inspected({"-m", clipseg_folder(), "--trace", image, "--batch", batch, "--slice", slice});
    EXPECT_NEAR(std::stod(out.substr(out.find('\n') + 1)), want.data<float>()[5 * want.size(1) + 7], 1e-4) << out;
  }
}

TEST(ToolsWithClipSeg, BenchHasARowForThePassAndForTheTask) {
  const std::vector<json> rows =
      json_lines(run({"bench", clipseg_folder(), "--seconds", "0.001", "--precision", "fp32,int8"}).out);
  ASSERT_EQ(rows.size(), 4U);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(rows[i]["task"], i % 2 == 0 ? "forward" : "segment");
}

TEST(ToolsWithClipSeg, AConvertedFolderHasTheTokenizerAndTheMasks) {
  const fs::path copy = scratch_folder() / "half";
  run({"convert", clipseg_folder(), "-o", copy, "--dtype", "fp16"});
  EXPECT_EQ(content_of(copy / "config.json"), content_of(fs::path(clipseg_folder()) / "config.json"));
  EXPECT_EQ(weights::Checkpoint::open(copy / "model.safetensors").info("decoder.film_mul.weight").dtype, DType::f16);
  const Arguments segment{"segment", noise_folder(), "--text", "a cat", "--rle", "-m"};
  EXPECT_EQ(run(segment + Arguments{copy}).out, run(segment + Arguments{clipseg_folder()}).out) << "the fixture is f16";
}

}  // namespace

OptionEffects clipseg_option_effects() {
  return {{"segment", "--text", check_each_text},
          {"segment", "--threshold", check_text_threshold},
          {"segment", "--heat", check_text_heat},
          {"segment", "--raw", check_text_raw}};
}

}  // namespace vitrail::testing
