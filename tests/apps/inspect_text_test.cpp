// SPDX-License-Identifier: Apache-2.0
// The texts of inspect: summaries, lists, traces, slices and errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "tests/apps/cli_fixture.h"
#include "tests/apps/option_effects.h"
#include "tests/apps/shell.h"
#include "tests/support/golden.h"
#include "tests/support/models.h"
#include "tests/support/sam_fixture.h"
#include "vitrail/base/npy.h"
#include "vitrail/models/load.h"
#include "vitrail/models/sam/sam.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

std::string inspect_refusal(const Arguments& more) { return refusal(Arguments{"inspect"} + more); }

// Lines of names and numbers, height before width.
TEST(InspectSummary, NamesTheWeightsTheInputAndTheSizes) {
  const fs::path folder = fixture("models/timm_non_square");
  const models::OpenedModel opened = models::open_model(folder);
  const auto parameters = models::build_model(opened).num_parameters();
  EXPECT_EQ(inspected({"-m", folder}),
            str("architecture  vit_tiny_patch16_224\nweights       ", (folder / "model.safetensors").string(),
                " (safetensors), timm keys\ninput         3 channels, image 24×16, patch 4×8\nmodel         width 18, "
                "depth 2, 3 heads, 10 classes\nparameters    ",
                parameters, "\n"));
  const fs::path beit = fixture("models/timm_beit");
  EXPECT_TRUE(contains(inspected({"-m", beit}),
                       " keys\nnames         timm's Beit, also with the names of the authors' files\ninput "));
  EXPECT_EQ(inspected({folder / "config.json"}),
            str("architecture  vit_tiny_patch16_224\nweights       none\ninput         3 channels, image 24×16, patch "
                "4×8\nmodel         width 18, depth 2, 3 heads, 10 classes\nparameters    ",
                parameters, "\n"));
  EXPECT_TRUE(contains(inspected({fixture("models/timm_gray")}), "\ninput         1 channels, image "));
  EXPECT_TRUE(contains(inspected({folder, "--image-size", "32,24"}), "image 32×24, patch 4×8\n"));
}

TEST(InspectSummary, OfADualModelHasTheTextTower) {
  const fs::path folder = fixture("models/hf_clip");
  const models::OpenedModel opened = models::open_model(folder);
  const std::string out = inspected({folder});
  EXPECT_TRUE(contains(out,
                       "\nmodel         width 20, depth 2, 2 heads, 10 features of the projection\n"
                       "text          width 18, depth 2, 3 heads, 24 tokens of 758\nparameters    "))
      << out;
  EXPECT_FALSE(contains(inspected({small_model()}), "\ntext "));
}

TEST(InspectSummary, OfSegmentAnythingHasEncoderAndDecoder) {
  const SamFixture padded = sam_fixture("padded_windows");
  const models::Sam sam = models::load_sam(padded.model);
  const std::string out = inspected({"-m", padded.model});
  EXPECT_TRUE(out.starts_with("architecture  segment_anything\nweights       " + padded.model.string() + " (")) << out;
  EXPECT_TRUE(out.ends_with(str(
      "input         3 channels, image 80×80, patch 8×8\nencoder       width 32, depth 3, 2 heads of 16, windows 4, "
      "global blocks 1\ndecoder       width 32, depth 2, 8 heads, 4 masks of 40×40\nparameters    ",
      sam.num_parameters(), "\n")))
      << out;
  EXPECT_EQ(lines_of(out).size(), 7U) << out;
  EXPECT_TRUE(inspected({"-m", sam_fixture("high_quality").model})
                  .starts_with("architecture  segment_anything, high quality\n"));
  EXPECT_EQ(
      inspected({"sam_vit_b"}),
      "architecture  segment_anything\nweights       none\ninput         3 channels, image 1024×1024, patch 16×16\n"
      "encoder       width 768, depth 12, 12 heads of 64, windows 14, global blocks 2 5 8 11\n"
      "decoder       width 256, depth 2, 8 heads, 4 masks of 256×256\nparameters    93735728\n");
}

TEST(InspectKeys, HaveNameTypeAndShapeInColumns) {
  const auto line = [](const std::string& name, const std::string& dtype, const std::string& shape) {
    return name + std::string(51 - name.size(), ' ') + dtype + std::string(6 - dtype.size(), ' ') + shape;
  };
  const fs::path file = scratch_folder() / "x.safetensors";
  weights::write_safetensors(file,
                             {{"a", Tensor::zeros({2, 3}, DType::f16)},
                              {"b.c", Tensor::zeros({}, DType::i64)},
                              {"d\ne", Tensor::zeros({4}, DType::bf16)}},
                             {});
  EXPECT_EQ(inspected({file, "--keys"}), line("a", "f16", "[2, 3]") + "\n" + line("b.c", "i64", "[]") + "\n" +
                                             line("d\\x0ae", "bf16", "[4]") + "\n");
  const std::vector<std::string> lines = lines_of(inspected({"vit_tiny_patch16_224", "--keys"}));
  EXPECT_EQ(std::ranges::count(lines, line("cls_token", "f32", "[1, 1, 192]")), 1);
  EXPECT_EQ(std::ranges::count(lines, line("blocks.11.mlp.fc1.weight", "f32", "[768, 192]")), 1);
  EXPECT_EQ(std::ranges::count(lines, line("head.bias", "f32", "[1000]")), 1);
  // The tree first, then the keys.
  const std::string both = inspected({"-m", small_model(), "--tree", "--keys"});
  EXPECT_EQ(both, inspected({"-m", small_model(), "--tree"}) + inspected({"-m", small_model(), "--keys"}));
  const fs::path sam = sam_fixture("windows").model;
  EXPECT_EQ(inspected({"-m", sam, "--tree", "--keys"}),
            inspected({"-m", sam, "--tree"}) + inspected({"-m", sam, "--keys"}));
}

// Without weights the values are random, which is said.
TEST(InspectTrace, WithoutWeightsIsOfRandomValues) {
  const std::string config = fixture("models/timm_token/config.json");
  for (const std::string& source : {config, std::string("vit_tiny_patch16_224")}) {
    const ProgramResult result = run({"inspect", source, "--slice", "cls_token[0, 0, :2]"});
    EXPECT_EQ(result.err, "vitrail: " + source + " has no weights; parameters are random (seed 0)\n");
    EXPECT_EQ(run({"inspect", source, "--slice", "cls_token[0, 0, :2]", "--quiet"}).err, "");
  }
  EXPECT_EQ(run({"inspect", "-m", small_model(), "--trace", "random"}).err, "");
}

// The image is prepared as the configuration and the options say, once for each of the batch.
TEST(InspectTrace, TheImageHasThePreprocessingOfTheOptions) {
  const std::string image = noise_folder() / "a.png", config = fixture("models/timm_token/config.json");
  const auto pixels = [&](const std::string& source, const Arguments& more, const std::string& slice = "0, :, 3, 4") {
    const std::string out = inspected(Arguments{source, "--trace", image, "--slice", "images[" + slice + "]"} + more);
    return out.substr(out.find('\n'));
  };
  for (const Arguments& more : {Arguments{}, Arguments{"--mean", "0.1,0.2,0.3"}, Arguments{"--crop-pct", "0.5"}})
    EXPECT_EQ(pixels(config, more), pixels(small_model(), more)) << ::testing::PrintToString(more);
  EXPECT_NE(pixels(config, {"--mean", "0.1,0.2,0.3"}), pixels(config, {}));
  EXPECT_EQ(pixels(small_model(), {"--batch", "3"}, "2, :, 3, 4"), pixels(small_model(), {}));
  const std::string shapes = inspected({small_model(), "--trace", image, "--batch", "3"});
  EXPECT_TRUE(contains(shapes, "images                           [3, 3, 32, 32] ")) << shapes;
  const std::string non_square = inspected({fixture("models/timm_non_square"), "--trace", "random"});
  EXPECT_TRUE(contains(non_square, "images                           [1, 3, 24, 16] ")) << non_square;
}

TEST(InspectTrace, HasATitleAndARowForEachValue) {
  const std::vector<std::string> lines = lines_of(inspected({small_model(), "--trace", "random"}));
  EXPECT_EQ(lines.at(0),
            "name                             shape                          mean        std  first values");
  const auto same = std::ranges::find_if(lines, [](const std::string& line) { return contains(line, " = "); });
  ASSERT_NE(same, lines.end());
  const std::string target = same->substr(same->find(" = ") + 3);
  EXPECT_TRUE(std::ranges::any_of(lines.begin(), same, [&](const std::string& line) {
    return line.starts_with(target + " ");
  })) << *same;
}

// Minus infinity among scores is no part of their mean.
TEST(InspectTrace, StatisticsAreOfFiniteValues) {
  bool seen = false;
  for (const std::string& line :
       lines_of(inspected({"layer:multihead_attention", "--set", "mask=causal", "--set", "queries=3"}))) {
    EXPECT_FALSE(contains(line, "nan")) << line;
    if (!contains(line, "-inf")) continue;
    seen = true;
    double mean = 0, deviation = 0;
    const std::string numbers = line.substr(line.find(']') + 1);
    ASSERT_EQ(std::sscanf(numbers.c_str(), "%lf %lf", &mean, &deviation), 2) << line;
    EXPECT_TRUE(std::isfinite(mean) && std::isfinite(deviation)) << line;
    EXPECT_GT(deviation, 0) << line;
  }
  EXPECT_TRUE(seen) << "no masked scores";
}

// The first three and the last three of more than eight, in each axis, indented by depth.
TEST(InspectSlices, ArePrintedAsNumPyPrintsThem) {
  const fs::path folder = with_config("timm_token", [](nlohmann::json&) {});
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const auto& [name, tensor] : read_golden(folder / "model.safetensors").tensors) {
    tensors.emplace_back(name, tensor.clone());
    if (name != "pos_embed") continue;  // [1, 17, 18]
    for (int64_t i = 0; i < tensor.numel(); ++i)
      tensors.back().second.data<float>()[i] = static_cast<float>(i / 18) + static_cast<float>(i % 18) / 100;
  }
  weights::write_safetensors(folder / "model.safetensors", tensors, {});
  const auto shown = [&](const std::string& slice) { return inspected({folder, "--slice", "pos_embed" + slice}); };
  EXPECT_EQ(shown("[0, :2, :3]"),
            "pos_embed[0, :2, :3] [2, 3]\n[[0.0000, 0.0100, 0.0200],\n [1.0000, 1.0100, 1.0200]]\n");
  EXPECT_EQ(shown("[:, 3:5, 1:2]"), "pos_embed[:, 3:5, 1:2] [1, 2, 1]\n[[[3.0100],\n  [4.0100]]]\n");
  EXPECT_EQ(shown("[0, 2, :8]"),
            "pos_embed[0, 2, :8] [8]\n[2.0000, 2.0100, 2.0200, 2.0300, 2.0400, 2.0500, 2.0600, 2.0700]\n");
  EXPECT_EQ(shown("[0, 2, :9]"), "pos_embed[0, 2, :9] [9]\n[2.0000, 2.0100, 2.0200, ..., 2.0600, 2.0700, 2.0800]\n");
  EXPECT_EQ(shown("[0, :9, 17]"), "pos_embed[0, :9, 17] [9]\n[0.1700, 1.1700, 2.1700, ..., 6.1700, 7.1700, 8.1700]\n");
  EXPECT_EQ(shown("[0, :, 0:1]"),
            "pos_embed[0, :, 0:1] [17, 1]\n[[0.0000],\n [1.0000],\n [2.0000], ...,\n [14.0000],\n [15.0000],\n "
            "[16.0000]]\n");
  EXPECT_EQ(shown("[0, -1, -1]"), "pos_embed[0, -1, -1] []\n16.1700\n");
  EXPECT_EQ(shown("[0,-2,  16 : ]"), "pos_embed[0,-2,  16 : ] [2]\n[15.1600, 15.1700]\n");
}

TEST(InspectSlices, ErrorsTellWhatFits) {
  const auto message = [](const std::string& slice) {
    const std::string text = inspect_refusal({"-m", small_model(), "--slice", slice});
    const std::string start = "vitrail: error: --slice: expected ";
    EXPECT_TRUE(text.starts_with(start)) << text;
    return text.substr(start.size());
  };
  EXPECT_EQ(message("pos_embed[0"), "NAME or NAME[0, :, :3], got \"pos_embed[0\"\n");
  EXPECT_EQ(message("pos_embed[1]"), "an index within [1, 17, 18] on axis 0, got 1\n");
  EXPECT_EQ(message("pos_embed[0, 17]"), "an index within [17, 18] on axis 0, got 17\n");
  EXPECT_EQ(message("pos_embed[:, -18]"), "an index within [1, 17, 18] on axis 1, got -18\n");
  EXPECT_EQ(message("pos_embed[0, 0, 0, 0]"), "at most 3 indices for shape [1, 17, 18], got \"0, 0, 0, 0\"\n");
  EXPECT_EQ(message("pos_embed[0, x]"), "integers, a:b, : or ... between the brackets, got \"0, x\"\n");
  EXPECT_EQ(message("pos_embd"),
            "a parameter of the model, or --trace IMAGE or --trace random for a value of the forward pass, got "
            "\"pos_embd\"; near: pos_embed\n")
      << "a name of the model and of its file is one";
  EXPECT_EQ(message("zzzzzzzz"),
            "a parameter of the model, or --trace IMAGE or --trace random for a value of the forward pass, got "
            "\"zzzzzzzz\"\n");
  const std::string traced = inspect_refusal({"-m", small_model(), "--trace", "random", "--slice", "blocks.0.norm3"});
  EXPECT_TRUE(contains(traced,
                       "--slice: expected a name that --trace or --keys lists, got \"blocks.0.norm3\"; near: "
                       "blocks.0.norm1, blocks.0.norm2"))
      << traced;
  EXPECT_TRUE(contains(inspect_refusal({"layer:mlp", "--slice", "mlp.fc3"}),
                       "--slice: expected a name that the layer lists without --slice, or one of its parameters, got "
                       "\"mlp.fc3\""));
}

TEST(InspectLayer, UnknownLayersAndSettingsAreNamedWithTheKnownOnes) {
  EXPECT_EQ(inspect_refusal({"layer:zzzzzz"}),
            "vitrail: error: layer:zzzzzz: expected a layer that `vitrail inspect layer:` lists, got no such layer\n");
  EXPECT_EQ(inspect_refusal({"layer:blok"}),
            "vitrail: error: layer:blok: expected a layer that `vitrail inspect layer:` lists, "
            "got no such layer; did you mean layer:block?\n");
  EXPECT_EQ(inspect_refusal({"layer:layer_norm", "--set", "zzzzzz=1"}),
            "vitrail: error: --set: expected a setting of layer:layer_norm (features, tokens, eps), got \"zzzzzz\"\n");
  EXPECT_EQ(inspect_refusal({"layer:layer_norm", "--set", "token=1"}),
            "vitrail: error: --set: expected a setting of layer:layer_norm (features, tokens, eps), got \"token\"; did "
            "you mean tokens?\n");
  EXPECT_EQ(inspect_refusal({"layer:mlp", "--set", "tokens"}),
            "vitrail: error: --set: expected NAME=VALUE, got \"tokens\"\n");
  EXPECT_EQ(inspect_refusal({"layer:mlp", "--set", "=4"}), "vitrail: error: --set: expected NAME=VALUE, got \"=4\"\n");
  EXPECT_TRUE(contains(inspect_refusal({"layer:positional_encoding", "--set", "max_len=16"}), "16"));
  inspected({"layer:positional_encoding", "--set", "max_len=17"});
}

// A file of floats is added to the scores; one of integers excludes keys where it is 0.
TEST(InspectLayer, MasksAreReadFromFiles) {
  const fs::path folder = scratch_folder();
  const std::vector<float> bias{0, -1e9F, 0, -1e9F, 0, -1e9F};  // [2, 3]
  write_npy(folder / "f32.npy", std::array<int64_t, 2>{2, 3}, bias.data());
  {
    std::ofstream out(folder / "f64.npy", std::ios::binary);
    const std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }";
    const std::string padded = header + std::string(118 - header.size() - 1, ' ') + "\n";
    out << std::string("\x93NUMPY\x01\x00", 8) << static_cast<char>(padded.size()) << '\0' << padded;
    for (const float value : bias) {
      const double wide = value;
      out.write(reinterpret_cast<const char*>(&wide), sizeof wide);
    }
  }
  const std::vector<int64_t> keys{1, 0, 1, 0, 1, 0};
  write_npy(folder / "i64.npy", std::array<int64_t, 2>{2, 3}, keys.data());
  const auto weights = [&](const char* file) {
    return inspected({"layer:multihead_attention", "--set", "queries=2", "--set", "keys=3", "--set",
                      "mask=" + (folder / file).string(), "--slice", "returned_weights"});
  };
  const std::string want = weights("i64.npy");
  EXPECT_TRUE(contains(want, "[0.0000, 1.0000, 0.0000]")) << want;
  EXPECT_EQ(weights("f32.npy"), want);
  EXPECT_EQ(weights("f64.npy"), want);
  // Causal with more keys than queries: the first query attends to the first key alone, the second to two.
  const std::string causal = inspected({"layer:multihead_attention", "--set", "queries=2", "--set", "keys=4", "--set",
                                        "mask=causal", "--slice", "returned_weights[0]"});
  EXPECT_TRUE(contains(causal, "[[1.0000, 0.0000, 0.0000, 0.0000],\n [0.")) << causal;
  EXPECT_TRUE(causal.ends_with(", 0.0000, 0.0000]]\n")) << causal;
}

// A file of this name is meant, even if an architecture has it too.
TEST(Inspect, AFilePrecedesAnArchitecture) {
  const fs::path folder = scratch_folder();
  for (const char* name : {"sam_vit_b", "vit_tiny_patch16_224"}) {
    std::ofstream(folder / name) << "no weights";
    EXPECT_EQ(shell("cd '" + folder.string() + "' && $V inspect " + name + " >out 2>err"), 1);
    EXPECT_EQ(content_of(folder / "out"), "");
    EXPECT_TRUE(contains(content_of(folder / "err"), name)) << content_of(folder / "err");
  }
}

}  // namespace
}  // namespace vitrail::testing
