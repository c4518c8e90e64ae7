// SPDX-License-Identifier: Apache-2.0
// inspect, bench, convert, models.
#include <fstream>

#include "tests/apps/cli_fixture.h"
#include "vitrail/base/npy.h"
#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/weights/checkpoint.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::testing {
namespace {

TEST(Inspect, SummaryNamesTheKeyFamilyAndTheModelSize) {
  const ProgramResult result = run_program({"inspect", "-m", fixture("models/hf_vit")});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(contains(result.out, "huggingface_vit keys")) << result.out;
  EXPECT_TRUE(contains(result.out, "depth 2")) << result.out;
}

TEST(Inspect, WeightsThatDoNotFitTheModelAreListed) {
  const std::filesystem::path folder = scratch_folder(), source = fixture("models/timm_token");
  std::filesystem::copy(source / "config.json", folder);
  const weights::Checkpoint checkpoint = weights::Checkpoint::open(source / "model.safetensors");
  std::vector<std::pair<std::string, Tensor>> tensors{{"extra", Tensor::zeros({3})}};
  for (const std::string& name : checkpoint.names()) {
    if (name != "norm.weight") tensors.emplace_back(name, checkpoint.tensor(name));
  }
  weights::write_safetensors(folder / "model.safetensors", tensors, {});
  const ProgramResult result = run_program({"inspect", folder});
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(result.out, "architecture")) << "what is there is shown all the same";
  EXPECT_TRUE(contains(result.err, "missing (1):\n    norm.weight")) << result.err;
  EXPECT_TRUE(contains(result.err, "not expected (1):\n    extra [3]")) << result.err;
  EXPECT_EQ(run_program({"inspect", folder, "--keys"}).status, 0) << "whatever they are";
}

TEST(Inspect, TreeHasPyTorchsFormat) {
  const ProgramResult result = run_program({"inspect", "vit_base_patch16_224", "--tree"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(contains(result.out, "    (0-11): 12 x Block(\n")) << result.out;
  EXPECT_TRUE(contains(result.out, "(proj): Conv2d(3, 768, kernel_size=(16, 16), stride=(16, 16))")) << result.out;
  EXPECT_TRUE(contains(result.out, "86567656")) << result.out;  // timm's parameter count
}

TEST(Inspect, KeysAreThoseOfTheWeightsFile) {
  const ProgramResult result = run_program({"inspect", "-m", fixture("models/hf_vit"), "--keys"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(contains(result.out, "vit.embeddings.cls_token")) << result.out;
}

TEST(Inspect, KeysNeedNoConfigurationAndNoKnownFamily) {
  const auto file = scratch_folder() / "other.safetensors";
  weights::write_safetensors(file, {{"net.stem.kernel", Tensor::zeros({2, 3})}}, {});
  const ProgramResult result = run_program({"inspect", file, "--keys"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(lines_of(result.out).size(), 1u);
  EXPECT_TRUE(result.out.starts_with("net.stem.kernel ")) << result.out;
  EXPECT_EQ(run_program({"inspect", file}).status, 1);
}

TEST(Inspect, TraceListsIntermediateTensorsAndSlicesPrintValues) {
  ProgramResult result = run_program({"inspect", "-m", small_model(), "--trace", "random"});
  ASSERT_EQ(result.status, 0) << result.err;
  for (const std::string name :
       {"patch_embed.proj", "patch_embed.transposed", "blocks.0.attn.qkv", "blocks.0.attn.q",
        "blocks.0.attn.k_transposed", "blocks.0.attn.scores", "blocks.1.attn.weights", "blocks.1.attn.context",
        "blocks.1.attn.merged", "blocks.1.attn.proj", "blocks.1.mlp.fc1", "pooled", "logits"}) {
    EXPECT_TRUE(contains(result.out, name + " ")) << name;
  }
  result = run_program({"inspect", "-m", small_model(), "--trace", image_folder(1) / "a.png", "--slice",
                        "blocks.0.attn.q[0, :, :3, 1]"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(result.out.starts_with("blocks.0.attn.q[0, :, :3, 1] [2, 3]\n[[")) << result.out;
  result = run_program({"inspect", "-m", small_model(), "--trace", "random", "--slice", "blocks.0.atn.q"});
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(result.err, "near: blocks.0.attn.q")) << result.err;
}

TEST(Inspect, AValueThatAModulePassesOnNamesItsSource) {
  const ProgramResult result = run_program({"inspect", "-m", small_model(), "--trace", "random"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(contains(result.out, "= blocks.0.attn.proj\n")) << result.out;  // dropout, layer scale, drop path
}

TEST(Inspect, SlicesKnowParametersAndTheNamesOfOtherLibraries) {
  const auto slice = [](const std::string& model, const std::string& name, bool trace) {
    std::vector<std::string> arguments{"inspect", "-m", fixture("models/" + model), "--slice", name};
    if (trace) arguments.insert(arguments.end(), {"--trace", "random"});
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out.substr(result.out.find('\n'));
  };
  const std::string weight = slice("hf_vit", "vit.encoder.layer.0.layernorm_before.weight[:3]", false);
  EXPECT_EQ(weight, slice("hf_vit", "blocks.0.norm1.weight[:3]", false));
  const std::string key = slice("hf_vit", "vit.encoder.layer.0.attention.attention.key[0, 0]", true);
  EXPECT_EQ(key, slice("hf_vit", "blocks.0.attn.qkv[0, 0, 18:36]", true));
  EXPECT_EQ(slice("seed_003", "blocks.0.attention_norm[0, 0]", true), slice("seed_003", "blocks.0.norm1[0, 0]", true));
}

TEST(Inspect, AConfigurationNeedsNoWeights) {
  const std::string config = fixture("models/timm_token/config.json");
  ProgramResult result = run_program({"inspect", config});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(contains(result.out, "weights       none")) << result.out;
  EXPECT_TRUE(contains(result.out, "image 32×32")) << result.out;
  result = run_program({"inspect", "--config", config, "--trace", "random", "--batch", "3", "--slice", "logits"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(result.out.starts_with("logits [3, 10]\n")) << result.out;
  EXPECT_TRUE(contains(result.err, "parameters are random")) << result.err;
  result = run_program({"inspect", "vit_base_patch16_224", "--image-size", "384"});
  EXPECT_TRUE(contains(result.out, "image 384×384")) << result.out;
  result = run_program({"inspect", "vit_base_patch16_224", "--config", config});
  EXPECT_EQ(result.status, 2);
  EXPECT_TRUE(contains(result.err, "--config")) << result.err;
  EXPECT_EQ(run_program({"inspect", "-m", small_model(), "--batch", "3"}).status, 2);
}

TEST(InspectLayer, EveryListedLayerRuns) {
  const ProgramResult list = run_program({"inspect", "layer:"});
  ASSERT_EQ(list.status, 0) << list.err;
  EXPECT_EQ(lines_of(list.out).size(), 9u);
  for (const std::string& line : lines_of(list.out)) {
    const std::string layer = line.substr(0, line.find(' '));
    const ProgramResult result = run_program({"inspect", layer, "--batch", "2"});
    EXPECT_EQ(result.status, 0) << layer << result.err;
    EXPECT_TRUE(contains(result.out, "out ")) << layer;
  }
}

TEST(InspectLayer, MasksExcludeKeysAndWeightsAreReturned) {
  std::vector<std::string> arguments{"inspect", "layer:multihead_attention", "--slice", "returned_weights[0]"};
  for (const char* setting : {"queries=3", "mask=causal", "padding=1"}) {
    arguments.insert(arguments.end(), {"--set", setting});
  }
  ProgramResult result = run_program(arguments);
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(contains(result.out, "[[1.0000, 0.0000, 0.0000],")) << result.out;
  EXPECT_TRUE(result.out.ends_with(", 0.0000]]\n")) << result.out;
  const auto mask = scratch_folder() / "mask.npy";
  const std::vector<int64_t> keys{0, 1, 0, 1, 1, 0};  // [2, 3]
  write_npy(mask, std::array<int64_t, 2>{2, 3}, keys.data());
  result = run_program({"inspect", "layer:multihead_attention", "--set", "queries=2", "--set", "keys=3", "--set",
                        "mask=" + mask.string(), "--slice", "returned_weights[0, 0]"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(contains(result.out, "[0.0000, 1.0000, 0.0000]")) << result.out;
  result = run_program({"inspect", "layer:multihead_attention", "--set", "need_weights=false"});
  EXPECT_FALSE(contains(result.out, "returned_weights")) << result.out;
}

TEST(InspectLayer, ASettingThatTheLayerDoesNotHaveIsAnError) {
  ProgramResult result = run_program({"inspect", "layer:mlp", "--set", "in_feature=3"});
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(result.err, "did you mean in_features?")) << result.err;
  result = run_program({"inspect", "layer:mpl"});
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(result.err, "did you mean layer:mlp?")) << result.err;
  for (const std::string value : {"-1", "0", "1048577", "wide"}) {
    result = run_program({"inspect", "layer:mlp", "--set", "in_features=" + value});
    EXPECT_EQ(result.status, 1);
    EXPECT_TRUE(contains(result.err, "--set in_features: expected an integer from 1 to 1048576, got")) << result.err;
  }
  EXPECT_EQ(run_program({"inspect", small_model(), "--set", "dim=3"}).status, 2);
}

TEST(Bench, EachBatchSizeGivesAnObjectWithTheDocumentedKeys) {
  const ProgramResult result = run_program({"bench", "cifar_vit_d192", "--batch", "1,2", "--seconds", "0.01"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto objects = json_lines(result.out);
  ASSERT_EQ(objects.size(), 2u);
  for (const char* key : {"model", "batch", "precision", "arithmetic", "threads", "isa", "runs", "min_ms", "median_ms",
                          "images_per_second", "gflop_per_s", "peak_rss_mb"}) {
    EXPECT_TRUE(objects[1].contains(key)) << key;
  }
  EXPECT_EQ(objects[1]["task"], "forward");
  EXPECT_EQ(objects[1]["batch"], 2);
  EXPECT_EQ(objects[1]["arithmetic"], "fp32");
}

TEST(Bench, AnArchitectureTakesNoOptionsOfWeights) {
  for (const char* option : {"--config", "--key-map"}) {
    const ProgramResult result = run_program({"bench", "cifar_vit_d192", option, "timm", "--seconds", "0.01"});
    EXPECT_EQ(result.status, 2);
    EXPECT_TRUE(contains(result.err, "cifar_vit_d192 is an architecture")) << result.err;
  }
}

TEST(Bench, HalfPrecisionIsAlsoCalledBf16) {
  for (const std::string name : {"half", "bf16"}) {
    const ProgramResult result =
        run_program({"bench", "cifar_vit_d192", "--batch", "1", "--seconds", "0.01", "--precision", name});
    ASSERT_EQ(result.status, 0) << result.err;
    const auto object = json_lines(result.out).at(0);
    EXPECT_EQ(object["precision"], "half");
    EXPECT_EQ(object["arithmetic"], kernels::arithmetic_of(kernels::Precision::half));
  }
}

TEST(Convert, EveryModelFamilyKeepsItsLogits) {
  const auto images = image_folder(2);
  for (const std::string name :
       {"timm_token", "timm_distilled", "hf_vit", "hf_deit_teacher", "torchvision_vit", "google_npz", "own_key_map"}) {
    const auto folder = scratch_folder();
    std::vector<std::string> source{"-m",       fixture("models/" + name), images, "--preset", "imagenet",
                                    "--logits", folder / "before.npy"};
    source.insert(source.begin(), "classify");
    ProgramResult result = run_program(source);
    ASSERT_EQ(result.status, 0) << name << result.err;
    result = run_program({"convert", fixture("models/" + name), "-o", folder / "hub"});
    ASSERT_EQ(result.status, 0) << name << result.err;
    result = run_program(
        {"classify", "-m", folder / "hub", images, "--preset", "imagenet", "--logits", folder / "after.npy"});
    ASSERT_EQ(result.status, 0) << name << result.err;
    EXPECT_EQ(read_npy(folder / "before.npy").f32, read_npy(folder / "after.npy").f32) << name;
  }
}

TEST(Convert, SixteenBitTypesHalveTheFileSize) {
  const auto folder = scratch_folder();
  for (const std::string dtype : {"fp32", "bf16", "fp16"}) {
    const ProgramResult result = run_program({"convert", small_model(), "-o", folder / dtype, "--dtype", dtype});
    ASSERT_EQ(result.status, 0) << result.err;
  }
  const auto full = std::filesystem::file_size(folder / "fp32/model.safetensors");
  const auto half = std::filesystem::file_size(folder / "bf16/model.safetensors");
  EXPECT_LT(static_cast<double>(half), 0.6 * static_cast<double>(full));
  // The header names the types "BF16" and "F16": one letter of difference per tensor.
  EXPECT_NEAR(half, std::filesystem::file_size(folder / "fp16/model.safetensors"), 64);
}

TEST(Models, RegisteredArchitecturesAreListedWithTheirSizes) {
  const ProgramResult result = run_program({"models"});
  ASSERT_EQ(result.status, 0);
  for (const char* name : {"vit_tiny_patch16_224", "deit_base_distilled_patch16_384", "vit_giant_patch14_reg4_dinov2",
                           "cifar_vit_d384", "google_vit_b16", "scratch_vit_b16"}) {
    EXPECT_TRUE(contains(result.out, name)) << name;
  }
}

}  // namespace
}  // namespace vitrail::testing
