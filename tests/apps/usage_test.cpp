// SPDX-License-Identifier: Apache-2.0
#include <fstream>

#include "tests/apps/cli_fixture.h"

namespace vitrail::testing {
namespace {

TEST(Usage, WrongUsageExitsWithTwo) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"paint"},
                                             {"classify"},
                                             {"classify", "x.png", "--no-such-option"},
                                             {"classify", "x.png", "--format", "xml"},
                                             {"classify", "x.png", "--top", "0"},
                                             {"classify", "-m", small_model(), "x.png", "--precision", "fp8"},
                                             {"attention", "-m", small_model(), "x.png"},
                                             {"inspect", "-m", small_model(), "--slice", "tokens"}}) {
    const Ended ended = run_program(arguments);
    EXPECT_EQ(ended.status, 2) << ::testing::PrintToString(arguments) << ended.err;
    EXPECT_FALSE(ended.err.empty());
    EXPECT_TRUE(ended.out.empty()) << ended.out;
  }
}

TEST(Usage, EverySubcommandHelpsWithAnExample) {
  for (const std::string name : {"classify", "embed", "attention", "eval", "inspect", "bench", "convert", "models"}) {
    const Ended ended = run_program({name, "--help"});
    EXPECT_EQ(ended.status, 0);
    EXPECT_TRUE(contains(ended.out, "Example: vitrail " + name)) << ended.out;
  }
  EXPECT_TRUE(run_program({"--version"}).out.starts_with("vitrail "));
}

TEST(Usage, OptionsWithListsLeaveTheInputsAlone) {
  const auto picture = picture_folder(1) / "a.png";
  const Ended ended = run_program({"classify", "-m", small_model(), "--mean", "0.5,0.5,0.5", "--std", "0.5,0.5,0.5",
                                   "--image-size", "32", picture, "--format", "json"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(json_lines(ended.out).size(), 1u);
  EXPECT_EQ(run_program({"bench", "--batch", "1,2", "cifar_vit_d192", "--seconds", "0.01"}).status, 0);
}

TEST(Usage, AnUnknownInstructionSetIsAnErrorThatListsThose) {
  const Ended ended = run_program({"bench", "cifar_vit_d192", "--batch", "1"}, "", {{"VITRAIL_CPU", "z80"}});
  EXPECT_EQ(ended.status, 1);
  EXPECT_TRUE(contains(ended.err, "scalar")) << ended.err;
}

TEST(Usage, MissingPreprocessingIsNotGuessed) {
  const auto folder = scratch_folder(), pictures = picture_folder(1);
  std::filesystem::copy(small_model() + "/model.safetensors", folder / "model.safetensors");
  auto config = nlohmann::json::parse(std::ifstream(small_model() + "/config.json"));
  config.erase("pretrained_cfg");
  std::ofstream(folder / "config.json") << config;
  Ended ended = run_program({"classify", "-m", folder, pictures});
  EXPECT_EQ(ended.status, 1);
  for (const std::string option : {"--mean", "--std", "--interpolation", "--crop-pct", "--image-size"}) {
    EXPECT_TRUE(contains(ended.err, option)) << ended.err;
  }
  ended = run_program({"classify", "-m", folder, pictures, "--preset", "cifar10"});
  EXPECT_EQ(ended.status, 0) << ended.err;
}

TEST(Usage, KeysThatAreMissingExtraOrMisshapenAreListedTogether) {
  const auto folder = scratch_folder();
  std::filesystem::copy(small_model() + "/model.safetensors", folder / "model.safetensors");
  auto config = nlohmann::json::parse(std::ifstream(small_model() + "/config.json"));
  config["model_args"]["depth"] = 3;
  config["num_classes"] = 7;
  config["model_args"]["class_token"] = false;
  config["global_pool"] = "avg";
  std::ofstream(folder / "config.json") << config;
  const Ended ended = run_program({"classify", "-m", folder, "x.png"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_TRUE(contains(ended.err, "blocks.2.attn.qkv.weight")) << ended.err;  // missing
  EXPECT_TRUE(contains(ended.err, "head.weight")) << ended.err;               // misshapen
  EXPECT_TRUE(contains(ended.err, "cls_token")) << ended.err;                 // not expected
}

TEST(Usage, UnknownModelArgsAreNamed) {
  const auto folder = scratch_folder();
  std::filesystem::copy(small_model() + "/model.safetensors", folder / "model.safetensors");
  auto config = nlohmann::json::parse(std::ifstream(small_model() + "/config.json"));
  config["model_args"]["dept"] = 3;
  std::ofstream(folder / "config.json") << config;
  const Ended ended = run_program({"inspect", "-m", folder});
  EXPECT_EQ(ended.status, 1);
  EXPECT_TRUE(contains(ended.err, "model_args")) << ended.err;
  EXPECT_TRUE(contains(ended.err, "\"dept\"")) << ended.err;
}

}  // namespace
}  // namespace vitrail::testing
