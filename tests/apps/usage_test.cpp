// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fstream>

#include "tests/apps/cli_fixture.h"
#include "vitrail/base/parallel.h"

namespace vitrail::testing {
namespace {

TEST(Usage, WithoutArgumentsHelpIsPrinted) {
  const ProgramResult result = run_program({});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.out, run_program({"--help"}).out);
}

TEST(Usage, UsageErrorsExitWithStatusTwo) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"paint"},
                                             {"classify"},
                                             {"classify", "x.png", "--no-such-option"},
                                             {"classify", "x.png", "--format", "xml"},
                                             {"classify", "x.png", "--top", "0"},
                                             {"classify", "-m", small_model(), "x.png", "--precision", "fp8"},
                                             {"attention", "-m", small_model(), "x.png"},
                                             {"inspect", "-m", small_model(), "--batch", "2"}}) {
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.status, 2) << ::testing::PrintToString(arguments) << result.err;
    EXPECT_FALSE(result.err.empty());
    EXPECT_TRUE(result.out.empty()) << result.out;
  }
}

TEST(Usage, MoreThreadsThanCoresAreSaidToBeUseless) {
  const std::string cores = std::to_string(available_threads()), more = std::to_string(available_threads() + 1);
  EXPECT_EQ(run_program({"inspect", "-m", small_model(), "--threads", cores}).err, "");
  const ProgramResult result = run_program({"inspect", "-m", small_model(), "--threads", more});
  EXPECT_EQ(result.status, 0);
  EXPECT_TRUE(contains(result.err, "--threads " + more)) << result.err;
}

// The first words of the lines below "Subcommands:" in the program's help.
std::vector<std::string> subcommands() {
  std::vector<std::string> names;
  bool listed = false;
  for (const std::string& line : lines_of(run_program({"--help"}).out)) {
    if (listed && !line.starts_with("  ")) break;
    if (listed && line[2] != ' ') names.push_back(line.substr(2, line.find(' ', 2) - 2));
    listed = listed || line == "Subcommands:";
  }
  return names;
}

TEST(Usage, EverySubcommandsHelpHasAnExample) {
  const std::vector<std::string> names = subcommands();
  EXPECT_EQ(std::ranges::count(names, "classify"), 1) << ::testing::PrintToString(names);
  for (const std::string& name : names) {
    const ProgramResult result = run_program({name, "--help"});
    EXPECT_EQ(result.status, 0);
    EXPECT_TRUE(contains(result.out, "Example: vitrail " + name)) << result.out;
  }
  EXPECT_TRUE(run_program({"--version"}).out.starts_with("vitrail "));
}

TEST(Usage, ListOptionsDoNotConsumeTheInputs) {
  const auto image = image_folder(1) / "a.png";
  const ProgramResult result = run_program({"classify", "-m", small_model(), "--mean", "0.5,0.5,0.5", "--std",
                                            "0.5,0.5,0.5", "--image-size", "32", image, "--format", "json"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(json_lines(result.out).size(), 1u);
  EXPECT_EQ(run_program({"bench", "--batch", "1,2", "cifar_vit_d192", "--seconds", "0.01"}).status, 0);
}

nlohmann::json probabilities_in(const std::string& line) { return nlohmann::json::parse(line).at("predictions"); }

TEST(Usage, EveryOptionOfAllCommandsHasAnEnvironmentVariable) {
  const std::map<std::string, std::string> environment{{"VITRAIL_THREADS", "1"}, {"VITRAIL_PRECISION", "half"}};
  const auto classify = [](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"classify", "-m", small_model(), image_folder(1), "--format", "json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  const std::string half = run_program(classify({"--precision", "half"})).out, fp32 = run_program(classify({})).out;
  EXPECT_EQ(probabilities_in(run_program(classify({}), "", environment).out), probabilities_in(half));
  EXPECT_EQ(probabilities_in(run_program(classify({"--precision", "fp32"}), "", environment).out),
            probabilities_in(fp32));
  EXPECT_NE(probabilities_in(half), probabilities_in(fp32));
  EXPECT_TRUE(contains(run_program({"info"}, "", environment).out, "threads         1 "));  // not refused
  const ProgramResult wrong = run_program({"info"}, "", {{"VITRAIL_THREADS", "many"}});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_TRUE(contains(wrong.err, "--threads")) << wrong.err;
  for (const std::string& line : lines_of(run_program({"--help"}).out)) {
    const bool ends_the_program =
        contains(line, "--help") || contains(line, "--version") || contains(line, "--license");
    if (!line.starts_with("  --") || ends_the_program) continue;
    EXPECT_TRUE(contains(line, "(Env:VITRAIL_")) << line;
  }
}

TEST(Usage, AnUnknownInstructionSetIsAnErrorThatListsTheKnownOnes) {
  const ProgramResult result = run_program({"bench", "cifar_vit_d192", "--batch", "1"}, "", {{"VITRAIL_CPU", "z80"}});
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(result.err, "scalar")) << result.err;
}

TEST(Usage, MissingPreprocessingIsAnErrorThatListsTheOptions) {
  const auto folder = scratch_folder(), images = image_folder(1);
  std::filesystem::copy(small_model() + "/model.safetensors", folder / "model.safetensors");
  auto config = nlohmann::json::parse(std::ifstream(small_model() + "/config.json"));
  config.erase("pretrained_cfg");
  std::ofstream(folder / "config.json") << config;
  ProgramResult result = run_program({"classify", "-m", folder, images});
  EXPECT_EQ(result.status, 1);
  for (const std::string option : {"--mean", "--std", "--interpolation", "--crop-pct", "--image-size"}) {
    EXPECT_TRUE(contains(result.err, option)) << result.err;
  }
  result = run_program({"classify", "-m", folder, images, "--preset", "cifar10"});
  EXPECT_EQ(result.status, 0) << result.err;
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
  const ProgramResult result = run_program({"classify", "-m", folder, "x.png"});
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(result.err, "blocks.2.attn.qkv.weight")) << result.err;  // missing
  EXPECT_TRUE(contains(result.err, "head.weight")) << result.err;               // misshapen
  EXPECT_TRUE(contains(result.err, "cls_token")) << result.err;                 // not expected
}

TEST(Usage, UnknownModelArgsAreErrors) {
  const auto folder = scratch_folder();
  std::filesystem::copy(small_model() + "/model.safetensors", folder / "model.safetensors");
  auto config = nlohmann::json::parse(std::ifstream(small_model() + "/config.json"));
  config["model_args"]["dept"] = 3;
  std::ofstream(folder / "config.json") << config;
  const ProgramResult result = run_program({"inspect", "-m", folder});
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(result.err, "model_args")) << result.err;
  EXPECT_TRUE(contains(result.err, "\"dept\"")) << result.err;
}

}  // namespace
}  // namespace vitrail::testing
