// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fstream>
#include <regex>

#include "tests/apps/cli_fixture.h"
#include "tests/support/errors.h"
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

TEST(Usage, ErrorsNameTheOptionAndWhatItTakes) {
  for (const auto& [arguments, message] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"classify", "x", "--format", "jso"},
            "--format: expected text, json or csv, got 'jso'; did you mean json?"},
           {{"classify", "x", "--format"},
            "--format: 1 required TEXT:{text,json,csv} missing (Output format: text, json (one object per line) or "
            "csv)"},
           {{"classify", "x", "--batch", "0"}, "--batch: expected an integer from 1 to 1024, got '0'"},
           {{"classify", "x", "--batch", "4.5"}, "--batch: expected an integer from 1 to 1024, got '4.5'"},
           {{"classify", "x", "--top", "1", "--top", "2"}, "--top: At Most 1 required but received 2"},
           {{"classify", "x", "--tome", "-1"}, "--tome: expected an integer of at least 0, got '-1'"},
           {{"classify", "x", "--crop-pct", "half"}, "--crop-pct: expected a number, got 'half'"},
           {{"classify", "x", "--mean", "0.5,b"}, "--mean: expected a number, got 'b'"},
           {{"classify", "x", "-y"}, "The following argument was not expected: -y"},
           {{"--threads", "0", "info"}, "--threads: expected an integer from 1 to 1024, got '0'"},
           {{"--threads", "2"}, "A subcommand is required"},
           {{"--exif"}, "A subcommand is required"},
           {{"--verison"}, "unknown option --verison; did you mean --version?"},
           {{"-m", "m", "classify", "x"}, "-m: expected after classify, got before it"},
           {{"--model=m", "classify", "x"}, "--model: expected after classify, got before it"},
           {{"convert", "-m", "m", "-o", "y"}, "-m: expected the model without it, as MODEL"},
           {{"bench", "--model", "m"}, "--model: expected the model without it, as ARCH_OR_MODEL"},
           {{"pca", "x", "-o", "y", "--opacity", "1.5"}, "--opacity: expected a number from 0 to 1, got '1.5'"},
           {{"cache", "lst"}, "action: lst not in {ls,verify,rm,prune}"},
           {{"train", "x"}, "--output is required"},
           {{"train", "x", "-o", "y", "--time", "4d"}, "--time: expected a time, such as 90s, 20m or 1.5h, got '4d'"},
           {{"train", "x", "-o", "y", "--time", "4m", "--epochs", "2"}, "--epochs excludes --time"},
           {{"serve", "--port", "99999"}, "--port: Value 99999 not in range 0 to 65535"},
           {{"segment", "-m", "m", "x", "--max-area", "2"}, "--max-area requires --everything"}}) {
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.status, 2) << result.err;
    EXPECT_EQ(lines_of(result.err).at(0), "vitrail: error: " + message) << ::testing::PrintToString(arguments);
  }
}

// Such as "$MODEL" without the variable.
TEST(Usage, AnEmptyPathIsNamed) {
  const std::string images = image_folder(1);
  for (const auto& [where, arguments] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"INPUT", {"classify", ""}},
           {"INPUT", {"classify", images, ""}},
           {"--model", {"classify", "-m", "", images}},
           {"--output", {"embed", images, "-o", ""}},
           {"--output", {"pca", images, "-o", ""}},
           {"IMAGE", {"attention", "", "-o", "x.png"}},
           {"INPUT", {"duplicates", ""}},
           {"DATASET", {"eval", ""}},
           {"TEST", {"knn", images, ""}},
           {"DATA", {"train", "", "-o", "run"}},
           {"--output", {"train", images, "-o", ""}},
           {"MODEL", {"convert", "", "-o", "x"}},
           {"ARCH_OR_MODEL", {"bench", ""}},
           {"--model", {"segment", "-m", "", images, "--everything"}},
           {"model", {"pull", ""}}}) {
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.status, 2) << ::testing::PrintToString(arguments);
    EXPECT_EQ(lines_of(result.err).at(0), "vitrail: error: " + where + ": expected a path, got '' (the path is empty)");
  }
  EXPECT_ERROR(lines_of(run_program({"classify", images, "--labels", ""}).err).at(0), "vitrail: error: --labels",
               "'' (it is empty)");
}

// Behind a command, the name of another one is an argument, such as the folder "train" of a dataset.
TEST(Usage, AnInputMayBeCalledLikeACommand) {
  const ProgramResult result = run_program({"classify", "-m", small_model(), "train"});
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(result.err, "train: ")) << result.err;
  EXPECT_EQ(run_program({"train", "eval", "-o", scratch_folder() / "run"}).status, 1) << "no dataset there";
}

TEST(Usage, AFileWhoseNameBeginsWithADashIsNamed) {
  const std::filesystem::path folder = scratch_folder();
  std::ofstream(folder / "-cat.png") << "x";
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder);
  const ProgramResult result = run_program({"classify", "-cat.png"});
  std::filesystem::current_path(before);
  EXPECT_EQ(result.status, 2);
  EXPECT_ERROR(lines_of(result.err).at(0), "vitrail: error", "the file '-cat.png'; write ./-cat.png");
}

TEST(Usage, AModelThatIsABrokenLinkIsSaidToBeOne) {
  const std::filesystem::path link = scratch_folder() / "model";
  std::filesystem::create_symlink("absent", link);
  const ProgramResult result = run_program({"inspect", link});
  EXPECT_TRUE(contains(result.err, "got a link to nothing\n")) << result.err;
}

TEST(Usage, MoreThreadsThanCoresAreSaidToBeUseless) {
  const std::string cores = std::to_string(available_threads()), more = std::to_string(available_threads() + 1);
  EXPECT_EQ(run_program({"inspect", "-m", small_model(), "--threads", cores}).err, "");
  const ProgramResult result = run_program({"inspect", "-m", small_model(), "--threads", more});
  EXPECT_EQ(result.status, 0);
  EXPECT_TRUE(contains(result.err, "--threads " + more)) << result.err;
  EXPECT_EQ(lines_of(result.err).size(), 1u) << "said once";
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

// Every option whose value is not free text.
TEST(Usage, EveryOptionRefusesAnotherValueByItsName) {
  const std::regex option("  (-[a-z],)?(--[a-z0-9-]+) (TEXT:\\{|INT|UINT|FLOAT|TIME|\\[).*");
  int checked = 0;
  for (const std::string& command : subcommands()) {
    for (const std::string& line : lines_of(run_program({command, "--help"}).out)) {
      std::smatch parts;
      if (!std::regex_match(line, parts, option)) continue;
      const std::string name = parts[2];
      const ProgramResult result = run_program({command, name + "=@@"});
      const std::string error = lines_of(result.err + "\n").at(0);
      EXPECT_EQ(result.status, 2) << command << " " << name << ": " << error;
      EXPECT_TRUE(contains(error, name) && contains(error, "@@")) << command << " " << name << ": " << error;
      ++checked;
    }
  }
  EXPECT_GT(checked, 60) << "options in the help";
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
  EXPECT_TRUE(contains(result.err, "model_args: dept: expected one of the fields")) << result.err;
}

}  // namespace
}  // namespace vitrail::testing
