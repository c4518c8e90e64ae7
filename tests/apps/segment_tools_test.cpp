// SPDX-License-Identifier: Apache-2.0
// inspect, bench and models with Segment Anything.
#include <cstdio>

#include "tests/apps/segment_runs.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// What --slice prints below the name and the shape.
std::string values_of(const std::string& slice, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{"-m", padded_windows().model, "--slice", slice};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const std::string out = inspected(arguments);
  return out.substr(out.find('\n') + 1);
}

fs::path write_photo() {
  const fs::path file = scratch_folder() / "photo.png";
  image::write_png(file, padded_windows().image);
  return file;
}

TEST(InspectSegment, SummaryAndTreeAreOfTheShapes) {
  const std::string summary = inspected({"-m", padded_windows().model});
  for (const char* part :
       {"sam keys", "image 80×80, patch 8×8", "width 32, depth 3, 2 heads of 16, windows 4, global blocks 1",
        "decoder       width 32, depth 2, 8 heads, 4 masks of 40×40"}) {
    EXPECT_TRUE(contains(summary, part)) << part << " in " << summary;
  }
  EXPECT_TRUE(contains(inspected({"-m", fixture("sam/mobile/model.pth")}), "TinyViT of 4 stages, width 16 to 40"));
  EXPECT_TRUE(contains(inspected({"sam_vit_b", "--keys"}), "image_encoder.blocks.2.attn.rel_pos_h"));
  const std::string tree = inspected({"sam_vit_b", "--tree"});
  EXPECT_TRUE(contains(tree, "(image_encoder): ImageEncoderViT(")) << tree;
  EXPECT_TRUE(contains(tree, " 89670912\n")) << "parameters of the image encoder";
  EXPECT_TRUE(contains(tree, " 4058340\n")) << "parameters of the mask decoder";
  EXPECT_TRUE(
      contains(inspected({"sam_vit_h"}), "width 1280, depth 32, 16 heads of 80, windows 14, global blocks 7 15 23 31"));
}

// A click at the centre of the image, as the predictor computes it.
TEST(InspectSegment, TraceGivesTheValuesOfThePredictor) {
  const fs::path image = write_photo();
  const json masks =
      json::parse(run_program({"segment", "-m", padded_windows().model, image, "--point", "45,30", "--format", "json"})
                      .out)["masks"];
  double iou[3] = {};
  const std::string printed = values_of("iou_predictions[0, 1:]", {"--trace", image});
  ASSERT_EQ(std::sscanf(printed.c_str(), "[%lf, %lf, %lf]", &iou[0], &iou[1], &iou[2]), 3) << printed;
  for (size_t m = 0; m < 3; ++m) EXPECT_NEAR(iou[m], masks[m]["iou"].get<double>(), 1e-3);
  const Tensor embedding =
      padded_windows().golden["embedding"].select(1, 3).select(1, 4).contiguous();  // [C] of a cell
  double channels[2] = {};
  const std::string cell = values_of("image_encoder[0, 3, 4, :2]", {"--trace", image});
  ASSERT_EQ(std::sscanf(cell.c_str(), "[%lf, %lf]", &channels[0], &channels[1]), 2) << cell;
  for (size_t c = 0; c < 2; ++c) EXPECT_NEAR(channels[c], embedding.data<float>()[c], 1e-3);
}

TEST(InspectSegment, TraceHasTheNamesOfTheReference) {
  const std::string out = inspected({"-m", padded_windows().model, "--trace", "random"});
  for (const std::string name :
       {"image_encoder.patch_embed.proj", "image_encoder.blocks.1.attn.qkv", "image_encoder.blocks.2.mlp.lin1",
        "image_encoder.neck.3", "image_encoder", "mask_decoder.transformer.layers.1.cross_attn_image_to_token",
        "mask_decoder.output_hypernetworks_mlps.3", "mask_decoder.iou_prediction_head", "low_res_masks"}) {
    EXPECT_TRUE(contains(out, "\n" + name + " ")) << name;
  }
}

// The examples of docs/segment.md.
TEST(InspectSegment, TrapsCanBeSeen) {
  const std::vector<std::string> trace{"--trace", write_photo()};
  // The last cell of the last window is padding.
  EXPECT_EQ(values_of("image_encoder.blocks.0.attn.qkv_windows[-1, -1, :4]", trace),
            values_of("image_encoder.blocks.0.attn.qkv.bias[:4]"));
  EXPECT_NE(values_of("image_encoder.blocks.0.attn.qkv_windows[-1, 0, :4]", trace),
            values_of("image_encoder.blocks.0.attn.qkv.bias[:4]"));
  EXPECT_EQ(values_of("prompt_encoder.sparse_embeddings[0, 1, :4]", trace),
            values_of("prompt_encoder.not_a_point_embed.weight[0, :4]"));
  // The first self-attention has no residual: norm1 reads its output.
  const std::string layers = "mask_decoder.transformer.layers.";
  int seen = 0;
  for (const std::string& line : lines_of(inspected({"-m", padded_windows().model, "--trace", "random"}))) {
    if (!contains(line, ".attended ")) continue;
    ++seen;
    const bool is_first = line.starts_with(layers + "0.");
    EXPECT_EQ(line.ends_with(" = " + layers + "0.self_attn.out_proj"), is_first) << line;
    EXPECT_EQ(contains(line, " = "), is_first) << line;
  }
  EXPECT_EQ(seen, 2);
}

TEST(InspectSegment, SlicesKnowTheNamesOfTransformers) {
  const std::string model = fixture("sam/transformers/model.safetensors");
  const std::string own = inspected({"-m", model, "--slice", "vision_encoder.layers.0.attn.qkv.bias[:2]"});
  const std::string official = inspected({"-m", model, "--slice", "image_encoder.blocks.0.attn.qkv.bias[:2]"});
  EXPECT_EQ(own.substr(own.find('\n')), official.substr(official.find('\n')));
}

TEST(InspectSegment, OptionsOfClassifiersAreRefused) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong{
      {{"--trace", "random", "--batch", "2"}, "--batch: Segment Anything"},
      {{"--image-size", "64"}, "--image-size: does not apply to Segment Anything"}};
  for (const auto& [more, message] : wrong) {
    std::vector<std::string> arguments{"inspect", "-m", padded_windows().model};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.status, 2) << result.err;
    EXPECT_TRUE(contains(result.err, message)) << result.err;
  }
  const ProgramResult typo =
      run_program({"inspect", "-m", padded_windows().model, "--trace", "random", "--slice", "low_res_mask"});
  EXPECT_EQ(typo.status, 1);
  EXPECT_TRUE(contains(typo.err, "near: low_res_masks")) << typo.err;
}

TEST(BenchSegment, EachTaskGivesARowOfATable) {
  const ProgramResult result =
      run_program({"bench", padded_windows().model, "--seconds", "0.001", "--format", "table"});
  ASSERT_EQ(result.status, 0) << result.err;
  const std::vector<std::string> lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), 6u) << result.out;
  EXPECT_TRUE(contains(lines[1], "prompts      precision")) << lines[1];
  EXPECT_TRUE(contains(lines[2], "image_encoder") && contains(lines[5], "everything")) << result.out;
}

TEST(BenchSegment, EachTaskGivesAnObject) {
  const ProgramResult result =
      run_program({"bench", padded_windows().model, "--batch", "1", "--seconds", "0.001", "--precision", "int8,fp32"});
  ASSERT_EQ(result.status, 0) << result.err;
  const std::vector<json> objects = json_lines(result.out);
  const std::pair<const char*, int> tasks[] = {
      {"image_encoder", 0}, {"click", 1}, {"clicks", 64}, {"everything", 1024}};
  ASSERT_EQ(objects.size(), 8u);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(objects[i]["task"], tasks[i % 4].first);
    EXPECT_EQ(objects[i]["prompts"], tasks[i % 4].second);
    EXPECT_EQ(objects[i]["precision"], i < 4 ? "int8" : "fp32");
    EXPECT_EQ(objects[i].contains("masks"), i % 4 == 3);
    EXPECT_LE(objects[i]["min_ms"], objects[i]["median_ms"]);
    for (const char* key : {"model", "batch", "arithmetic", "threads", "isa", "runs", "peak_rss_mb"}) {
      EXPECT_TRUE(objects[i].contains(key)) << key;
    }
  }
}

TEST(BenchSegment, AnImageEncoderAloneHasOneTask) {
  const ProgramResult result =
      run_program({"bench", sam_fixture("timm_encoder").model, "--batch", "1", "--seconds", "0.001"});
  ASSERT_EQ(result.status, 0) << result.err;
  const std::vector<json> objects = json_lines(result.out);
  ASSERT_EQ(objects.size(), 1u);
  EXPECT_EQ(objects[0]["task"], "image_encoder");
}

TEST(BenchSegment, OptionsOfClassifiersAreRefused) {
  const std::vector<std::vector<std::string>> wrong{
      {"--train"}, {"--profile"}, {"--tome", "2"}, {"--batch", "1,2"}, {"--image-size", "64"}};
  for (const std::vector<std::string>& more : wrong) {
    std::vector<std::string> arguments{"bench", "sam_vit_b"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.status, 2) << result.err;
    EXPECT_TRUE(contains(result.err, more[0] + ": ") && contains(result.err, "Segment Anything")) << result.err;
  }
}

TEST(ModelsSegment, MisspelledArchitecturesHaveNearNames) {
  const ProgramResult result = run_program({"bench", "sam_vit_bb"});
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(result.err, "near names: sam_vit_b")) << result.err;
}

TEST(ModelsSegment, ArchitecturesAreListed) {
  const std::string out = run_program({"models"}).out;
  for (const char* name : {"sam_vit_b ", "sam_vit_l ", "sam_vit_h "}) EXPECT_TRUE(contains(out, name)) << name;
}

}  // namespace
}  // namespace vitrail::testing
