// SPDX-License-Identifier: Apache-2.0
// What the command line takes and refuses: defaults, ranges, reasons and suggestions.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "tests/apps/cli_fixture.h"
#include "tests/apps/option_effects.h"
#include "tests/apps/shell.h"
#include "tests/support/errors.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

struct Refused {
  Arguments arguments;
  std::string message;  // the whole first line, without "vitrail: error: "
};

void expect_refused(const std::vector<Refused>& cases, int status = 2) {
  for (const auto& [arguments, message] : cases) {
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.status, status) << ::testing::PrintToString(arguments) << result.err;
    EXPECT_EQ(lines_of(result.err + "\n").at(0), "vitrail: error: " + message) << ::testing::PrintToString(arguments);
    EXPECT_EQ(result.out, "") << ::testing::PrintToString(arguments);
  }
}

// Types, ranges, choices, defaults and conditions, as the help and docs/cli.md have them.
TEST(HelpOptions, HaveTheirTypesRangesAndDefaults) {
  const std::map<std::string, std::vector<std::string>> expected{
      {"classify",
       {"INPUT TEXT ... REQUIRED", "--top INT=5", "--format TEXT:{text,json,csv}=text",
        "--batch INT:INT in [1 - 1024]=8"}},
      {"zeroshot",
       {"INPUT TEXT ... REQUIRED", "--labels TEXT REQUIRED", "--template TEXT ...", "--top INT=5",
        "--format TEXT:{text,json,csv}=text", "--batch INT:INT in [1 - 1024]=8"}},
      {"embed",
       {"INPUT TEXT ...", "--text TEXT Excludes: --tokens --layer --no-norm", "-o,--output TEXT REQUIRED",
        "--tokens TEXT:{pooled,cls,patch,all}=pooled Excludes: --text", "--layer INT=[-1] ... Excludes: --text",
        "--no-norm Excludes: --text", "--dtype TEXT:{fp32,fp16}=fp32", "--batch INT:INT in [1 - 1024]=8"}},
      {"attention",
       {"IMAGE TEXT REQUIRED", "--layer TEXT=-1 Excludes: --rollout", "--head TEXT=mean Excludes: --rollout",
        "--query INT ...", "--class TEXT", "--baseline TEXT:{mean,black,blurred}=mean",
        "--rollout Excludes: --layer --head"}},
      {"pca",
       {"INPUT TEXT ... REQUIRED", "-o,--output TEXT REQUIRED", "--layer INT=-1", "--foreground TEXT=none",
        "--opacity FLOAT:FLOAT in [0 - 1]=0.75", "--batch INT:INT in [1 - 1024]=8"}},
      {"segment",
       {"INPUT TEXT ...", "--write TEXT:{overlay,masks,csv,coco,sa1b,polygons}=[overlay] ...",
        "--opacity FLOAT:FLOAT in [0 - 1]=0.5", "--format TEXT:{text,json}=text", "--point TEXT ...", "--box TEXT ...",
        "--points-per-side INT=32 Needs: --everything", "--points-per-batch INT=64 Needs: --everything",
        "--pred-iou-thresh FLOAT Needs: --everything", "--stability-score-thresh FLOAT:NUMBER=0.95 Needs: --everything",
        "--stability-score-offset FLOAT:NONNEGATIVE=1 Needs: --everything",
        "--box-nms-thresh FLOAT:FLOAT in [0 - 1]=0.7 Needs: --everything",
        "--crop-n-layers INT:INT in [0 - 8]=0 Needs: --everything",
        "--crop-nms-thresh FLOAT:FLOAT in [0 - 1]=0.7 Needs: --everything",
        "--crop-overlap-ratio FLOAT:FLOAT in [0 - 1]=0.341333 Needs: --everything",
        "--crop-n-points-downscale-factor INT=1 Needs: --everything",
        "--min-mask-region-area INT:NONNEGATIVE=0 Needs: --everything",
        "--min-area INT:NONNEGATIVE=0 Needs: --everything", "--max-area INT:NONNEGATIVE=none Needs: --everything"}},
      {"eval",
       {"DATASET TEXT REQUIRED", "--template TEXT ... Needs: --zeroshot", "--templates TEXT Needs: --zeroshot",
        "--tokenizer TEXT Needs: --zeroshot", "--format TEXT:{table,json}", "--batch INT:INT in [1 - 1024]=8"}},
      {"inspect",
       {"--slice TEXT ... Excludes: --table", "--batch INT=1 Excludes: --table",
        "--table TEXT:{heads,norms,lens,ablation,cka,neurons} Excludes: --gradient --output --slice --batch",
        "--class TEXT", "--images IMAGES ...", "--neuron TEXT", "--set TEXT ..."}},
      {"bench",
       {"ARCH_OR_MODEL TEXT REQUIRED", "--batch INT:INT in [1 - 4096]=[1,8] ...", "--precision TEXT=[fp32] ...",
        "--seconds FLOAT=3", "--format TEXT:{table,json}"}},
      {"convert",
       {"MODEL TEXT REQUIRED", "-o,--output TEXT REQUIRED", "--dtype TEXT:{fp32,bf16,fp16,int8}=fp32",
        "--calibrate IMAGES ...", "--tolerance FLOAT=0.0165 Needs: --calibrate Excludes: --activations",
        "--opset INT:INT in [17 - 21]=17", "--input TEXT:{float,uint8}=float",
        "--activations TEXT:{fp32,int8,uint8}=fp32 Excludes: --tolerance"}},
      {"train",
       {"DATA TEXT REQUIRED", "-o,--output TEXT REQUIRED", "--preset TEXT:{finetune,probe,scratch}",
        "--epochs INT:INT in [1 - 1000000] Excludes: --time", "--time TIME Excludes: --epochs",
        "--folds INT:INT in [2 - 20]", "--set TEXT ...", "--allow-changes Needs: --resume"}},
      {"serve",
       {"-m,--model TEXT ...", "--host TEXT=127.0.0.1", "--port UINT:INT in [0 - 65535]=8080",
        "--batch INT:INT in [1 - 1024]=8", "--delay FLOAT:FLOAT in [0 - 10000]=0",
        "--decode-threads INT:INT in [1 - 1024]", "--limit TEXT ..."}},
      {"knn",
       {"TRAIN TEXT REQUIRED", "TEST TEXT REQUIRED", "--k INT=20", "--temperature FLOAT=0.07 Excludes: --plain",
        "--plain,--uniform Excludes: --temperature", "--batch INT:INT in [1 - 1024]=32"}},
      {"index",
       {"EMBEDDINGS TEXT ... REQUIRED", "-o,--output TEXT REQUIRED", "--dtype TEXT:{fp32,int8}=fp32",
        "--format TEXT:{table,json}"}},
      {"search",
       {"INDEX TEXT REQUIRED", "INPUT TEXT ...", "--text TEXT ...", "--top INT=5",
        "--threshold FLOAT:FLOAT in [-1 - 1]", "--format TEXT:{text,json}=text", "--report TEXT",
        "--batch INT:INT in [1 - 1024]=8"}},
      {"duplicates",
       {"INPUT TEXT ... REQUIRED", "--threshold FLOAT:FLOAT in [-1 - 1]=0.9", "--format TEXT:{text,json}=text",
        "--batch INT:INT in [1 - 1024]=8"}},
      {"audit",
       {"DATASET TEXT REQUIRED", "--unlabelled TEXT ...", "--threshold FLOAT:FLOAT in [-1 - 1]=0.9",
        "--next INT:NONNEGATIVE=20", "--limit INT=20", "--format TEXT:{text,json,csv}=text",
        "--batch INT:INT in [1 - 1024]=32"}},
      {"pull", {"model TEXT ... REQUIRED"}},
      {"cache", {"action TEXT:{ls,verify,rm,prune} REQUIRED", "model TEXT ..."}},
      {"completion", {"kind TEXT:{bash,zsh,fish,man} REQUIRED"}}};
  for (const auto& [command, options] : expected) {
    const std::vector<std::string> lines = lines_of(run({command, "--help"}).out);
    for (const std::string& option : options) {
      const std::string start = "  " + option;
      EXPECT_TRUE(std::ranges::any_of(
          lines, [&](const std::string& line) { return line == start || line.starts_with(start + " "); }))
          << command << ": " << option;
    }
  }
  const std::vector<std::string> program = lines_of(run({"--help"}).out);
  for (const char* option : {"  --threads INT:INT in [1 - 1024] (Env:VITRAIL_THREADS)",
                             "  --precision TEXT:{fp32,half,bf16,int8} (Env:VITRAIL_PRECISION)",
                             "  --decode-memory INT:INT in [1 - 1048576] (Env:VITRAIL_DECODE_MEMORY)",
                             "  --max-memory INT:INT in [32 - 1073741824] (Env:VITRAIL_MAX_MEMORY)"})
    EXPECT_EQ(std::ranges::count(program, option), 1) << option;
}

// Commands without a computation of a model's refuse the precision, before or behind their names.
TEST(Precision, HasAReasonWhereItHasNoEffect) {
  const std::string none = ": no model runs";
  const auto message = [](const std::string& command, const std::string& reason) {
    return "--precision: has no effect on " + command + reason;
  };
  expect_refused({{{"train", "x", "-o", "y", "--precision", "half"},
                   message("train", ": training has its own: --set precision=bf16")},
                  {{"convert", "x", "-o", "y", "--precision", "half"},
                   message("convert", ": the converted model has that of --dtype")},
                  {{"inspect", "x", "--precision=int8"}, message("inspect", ": traces are computed in fp32")},
                  {{"--precision", "fp32", "models"}, message("models", none)},
                  {{"--precision=fp32", "index", "x", "-o", "y"}, message("index", none)},
                  {{"pull", "a/b", "--precision", "half"}, message("pull", none)},
                  {{"cache", "ls", "--precision", "half"}, message("cache", none)},
                  {{"completion", "bash", "--precision", "half"}, message("completion", none)},
                  {{"info", "--precision", "half"}, message("info", none)}});
  run({"models"}, {{"VITRAIL_PRECISION", "half"}});
}

// The message for a value that is outside of an option's range.
std::string outside(const std::string& option, const std::string& range, const std::string& value) {
  return option + ": expected " + range + ", got '" + value + "'";
}

TEST(ProgramOptions, HaveInclusiveLimits) {
  const std::map<std::string, std::vector<std::string>> wrong{
      {"--threads", {"1 to 1024", "0", "1025", "-1"}},
      {"--decode-memory", {"1 to 1048576", "0", "1048577"}},
      {"--max-memory", {"32 to 1073741824", "15", "1073741825"}}};
  for (const auto& [option, values] : wrong) {
    for (size_t i = 1; i < values.size(); ++i)
      expect_refused({{{"info", option, values[i]}, outside(option, "an integer from " + values[0], values[i])}});
  }
  for (const Arguments& more : {Arguments{"--threads", "1024"},
                                {"--decode-memory", "1048576"},
                                {"--decode-memory", "1"},
                                {"--max-memory", "1073741824"}})
    run(Arguments{"info"} + more);
}

TEST(CommandOptions, OutsideOfTheirRangesAreRefused) {
  for (const char* command : {"classify", "eval", "duplicates"}) {
    expect_refused({{{command, "x", "--batch", "1025"}, outside("--batch", "an integer from 1 to 1024", "1025")},
                    {{command, "x", "--batch", "0"}, outside("--batch", "an integer from 1 to 1024", "0")}});
  }
  expect_refused(
      {{{"knn", "x", "y", "--batch", "1025"}, outside("--batch", "an integer from 1 to 1024", "1025")},
       {{"serve", "--batch", "1025"}, outside("--batch", "an integer from 1 to 1024", "1025")},
       {{"serve", "--batch", "0"}, outside("--batch", "an integer from 1 to 1024", "0")},
       {{"serve", "--delay", "10001"}, outside("--delay", "a number from 0 to 10000", "10001")},
       {{"serve", "--delay", "-1"}, outside("--delay", "a number from 0 to 10000", "-1")},
       {{"serve", "--port", "65536"}, "--port: Value 65536 not in range 0 to 65535"},
       {{"serve", "--decode-threads", "0"}, outside("--decode-threads", "an integer from 1 to 1024", "0")},
       {{"serve", "--decode-threads", "1025"}, outside("--decode-threads", "an integer from 1 to 1024", "1025")},
       {{"train", "x", "-o", "y", "--folds", "1"}, outside("--folds", "an integer from 2 to 20", "1")},
       {{"train", "x", "-o", "y", "--folds", "21"}, outside("--folds", "an integer from 2 to 20", "21")},
       {{"train", "x", "-o", "y", "--epochs", "0"}, outside("--epochs", "an integer from 1 to 1000000", "0")},
       {{"train", "x", "-o", "y", "--epochs", "1000001"},
        outside("--epochs", "an integer from 1 to 1000000", "1000001")},
       {{"bench", "x", "--batch", "4097"}, outside("--batch", "an integer from 1 to 4096", "4097")},
       {{"pca", "x", "-o", "y", "--opacity", "-0.1"}, outside("--opacity", "a number from 0 to 1", "-0.1")},
       {{"knn", "x", "y", "--k", "0"}, outside("--k", "an integer of at least 1", "0")},
       {{"knn", "x", "y", "--temperature", "0"}, outside("--temperature", "a number above 0", "0")},
       {{"search", "x", "--top", "0"}, outside("--top", "an integer of at least 1", "0")},
       {{"convert", "x", "-o", "y", "--opset", "16"}, outside("--opset", "an integer from 17 to 21", "16")},
       {{"convert", "x", "-o", "y", "--opset", "22"}, outside("--opset", "an integer from 17 to 21", "22")}});
}

TEST(SegmentOptions, OutsideOfTheirRangesAreRefused) {
  const Arguments everything{"segment", "-m", "/nowhere", "x.png", "--everything"};
  const std::map<std::string, std::vector<std::string>> wrong{{"--crop-nms-thresh", {"-0.1", "1.1"}},
                                                              {"--crop-overlap-ratio", {"-0.1", "1.1"}},
                                                              {"--box-nms-thresh", {"-0.1"}},
                                                              {"--crop-n-layers", {"-1", "9"}},
                                                              {"--min-mask-region-area", {"-1"}},
                                                              {"--stability-score-offset", {"-0.5"}},
                                                              {"--opacity", {"-0.1", "1.1"}},
                                                              {"--points-per-batch", {"0"}},
                                                              {"--crop-n-points-downscale-factor", {"0"}},
                                                              {"--min-area", {"-1"}},
                                                              {"--max-area", {"-1"}},
                                                              {"--pred-iou-thresh", {"x"}}};
  for (const auto& [option, values] : wrong) {
    for (const std::string& value : values) {
      const ProgramResult result = run_program(everything + Arguments{option, value});
      EXPECT_EQ(result.status, 2) << option << value;
      EXPECT_TRUE(result.err.starts_with("vitrail: error: " + option + ": ")) << result.err;
    }
  }
  // The ends of the ranges are in them: the model is the next error.
  for (const Arguments& more : {Arguments{"--crop-nms-thresh", "0"},
                                {"--crop-nms-thresh", "1"},
                                {"--crop-n-layers", "8"},
                                {"--min-area", "5", "--max-area", "5"},
                                {"--stability-score-offset", "0"},
                                {"--pred-iou-thresh", "-1"},
                                {"--pred-iou-thresh", "2"}}) {
    const ProgramResult result = run_program(everything + more);
    EXPECT_EQ(result.status, 1) << ::testing::PrintToString(more) << result.err;
    EXPECT_TRUE(contains(result.err, "/nowhere")) << result.err;
  }
}

TEST(SegmentOptions, ThatExcludeEachOtherSayWhy) {
  const std::string no_prompt = ": expected no prompt beside it";
  expect_refused(
      {{{"segment", "-m", "m", "--prompts", "p", "--single"}, "--prompts: expected no other prompt beside it"},
       {{"segment", "-m", "m", "--prompts", "p", "--mask", "x"}, "--prompts: expected no other prompt beside it"},
       {{"segment", "-m", "m", "--prompts", "p", "a"}, "--prompts: names the images itself: expected no INPUT"},
       {{"segment", "-m", "m", "a", "--everything", "--single"}, "--everything" + no_prompt},
       {{"segment", "-m", "m", "a", "--everything", "--box", "1,2,3,4"}, "--everything" + no_prompt},
       {{"segment", "-m", "m", "--everything", "--prompts", "p"}, "--everything" + no_prompt},
       {{"segment", "-m", "m", "a", "--single", "--embedding", "e.npy"}, "--single: expected --point, --box or --mask"},
       {{"segment", "-m", "m", "a", "--precompute", "--embedding", "e.npy"}, "--precompute: expected --cache FOLDER"},
       {{"segment", "-m", "m", "a", "--precompute", "--cache", "c", "--everything"}, "--precompute" + no_prompt},
       {{"segment", "-m", "m", "a", "--everything", "--logits", "l.npy"}, "--logits: expected a prompt"},
       {{"segment", "-m", "m", "a", "--embedding", "e.npy", "--logits", "l.npy"}, "--logits: expected a prompt"},
       {{"segment", "-m", "m", "a", "--embedding", "e.npy", "-o", "o"}, "-o: expected a prompt or --everything"},
       {{"segment", "-m", "m", "a", "--embedding", "e.npy", "--format", "json"},
        "--format json: expected a prompt or --everything"},
       {{"segment", "-m", "m", "a", "--everything", "--write", "csv"}, "--write: expected -o FOLDER"},
       {{"segment", "-m", "m", "a", "--point", "1,1", "--embedding", "e.txt"},
        "--embedding: expected FILE.npy, got e.txt"},
       {{"segment", "-m", "m", "a", "--point", "1,1", "--logits", "l"}, "--logits: expected FILE.npy, got l"},
       {{"segment", "-m", "m", "a", "--box", "1,2,3,4", "--box", "1,2,3,4"},
        "--box: expected one box; --prompts FILE.jsonl takes several prompts, got two"},
       {{"segment", "-m", "m", "a", "--everything", "--min-area", "6", "--max-area", "5"},
        "--min-area: expected at most --max-area"},
       {{"segment", "-m", "m", "a", "--point", "1,1", "--preset", "imagenet"},
        "--preset: expected segment_anything, medsam or segment_anything_2, got 'imagenet'"}});
}

TEST(CommandOptions, ThatNeedOthersSayWhich) {
  const std::string images = image_folder(1), a = images + "/a.png";
  const fs::path out = scratch_folder();
  expect_refused(
      {{{"attention", a}, "-o: expected FILE.png, or --raw FILE.npy instead, got none"},
       {{"attention", a, "-o", "x.jpg"}, "-o: expected FILE.png, got 'x.jpg'"},
       {{"attention", a, "-o", "x.png", "--query", "1,2,3"},
        "--query: expected X,Y in pixels, got another number of values"},
       {{"cache", "ls", "--remove"}, "--remove: belongs to vitrail cache verify"},
       {{"cache", "verify", "--dry-run"}, "--dry-run: belongs to vitrail cache rm and prune"},
       {{"cache", "rm"}, "model: vitrail cache rm needs the models to delete"},
       {{"embed", "-m", small_model(), "-o", out / "x.npy"}, "INPUT: images, or --text"},
       {{"embed", "-m", small_model(), a, "--text", "cat", "-o", out / "x.npy"}, "--text: either images or --text"},
       {{"embed", "x.tar", a, "-o", out}, "INPUT: either shards (.tar) or other inputs"},
       {{"embed", a, "-o", out / "x.csv", "--dtype", "fp16"}, "--dtype: fp16 is for FILE.npy and FILE.npz"},
       {{"search", "x.index"}, "INPUT: images, or --text"},
       {{"classify", "-m", small_model(), a, "--image-size", "32,32,32"},
        "--image-size: expected N or HEIGHT,WIDTH in pixels, got '32,32,32'"},
       {{"inspect", small_model(), "--set", "x=1"}, "--set: is for layers, as in: vitrail inspect layer:mlp"},
       {{"inspect", small_model(), "--batch", "2"}, "--batch: requires --trace IMAGE or --trace random"},
       {{"inspect", small_model(), "--gradient", "2"}, "--gradient: requires --trace IMAGE or --trace random"},
       {{"inspect", small_model(), "--table", "heads"}, "--table: heads requires --trace IMAGE or --trace random"},
       {{"inspect", small_model(), "--table", "cka"}, "--table: cka requires --images"},
       {{"inspect", small_model(), "--table", "neurons", "--images", "x"}, "--table: neurons requires --neuron"},
       {{"inspect", small_model(), "--table", "cka", "--images", "x", "--trace", "random"},
        "--trace: does not apply to --table cka, which has --images"},
       {{"inspect", small_model(), "--images", "x"}, "--images: requires --table cka or neurons"},
       {{"inspect", small_model(), "--table", "heads", "--trace", "random", "--images", "x"},
        "--images: requires --table cka or neurons"},
       {{"inspect", small_model(), "--table", "cka", "--images", "x", "--neuron", "0.1"},
        "--neuron: requires --table neurons"},
       {{"inspect", small_model(), "--class", "1"}, "--class: requires --table lens or ablation"},
       {{"inspect", small_model(), "--trace", "random", "--table", "norms", "--class", "1"},
        "--class: requires --table lens or ablation"},
       {{"inspect", small_model(), "-o", out / "x.npz"}, "-o: requires --trace IMAGE or --trace random"},
       {{"inspect", small_model(), "--trace", "random", "-o", "x.npy"}, "-o: expected FILE.npz, got 'x.npy'"},
       {{"inspect", "vit_tiny_patch16_224", "--config", "c.json"},
        "--config: vit_tiny_patch16_224 is a configuration already; give one of the two"},
       {{"inspect", "vit_tiny_patch16_224", "--key-map", "timm"}, "--key-map: vit_tiny_patch16_224 has no weights"},
       {{"inspect", "vit_tiny_patch16_224", "--adapter", "a"}, "--adapter: vit_tiny_patch16_224 has no weights"},
       {{"bench", small_model(), "--train", "--tome", "2"}, "--tome: token merging applies to inference only"},
       {{"bench", small_model(), "--train", "--precision", "int8"}, "--precision: training takes fp32 or half"},
       {{"bench", "cifar_vit_d192", "--key-map", "timm"},
        "--key-map: is for a weights file; cifar_vit_d192 is an architecture"},
       {{"bench", "cifar_vit_d192", "--adapter", "a"},
        "--adapter: is for a weights file; cifar_vit_d192 is an architecture"},
       {{"convert", small_model(), "-o", out / "f", "--calibrate", a}, "--calibrate: requires --dtype int8"},
       {{"pca", a, "-o", out / "p", "--invert"},
        "--invert: expected --foreground first or a number beside it, got none"},
       {{"pca", a, "-o", out / "p", "--foreground", "2"},
        "--foreground: expected none, first or a number from 0 to 1, got 2"},
       {{"train", "x", "-o", "y", "--data", "z"}, "--data: belongs to a recipe; here DATA is the dataset"},
       {{"train", "x", "-o", "y", "--preset", "scratch", "-m", "z"},
        "--preset scratch: without -m: a new model starts from no other"}});
  for (const Arguments& more : {Arguments{"--epochs", "2"}, {"--time", "9s"}, {"--folds", "2"}}) {
    expect_refused({{Arguments{"train", "x", "-o", "y", "--preset", "probe"} + more,
                     "--preset probe: without --epochs, --time and --folds: a probe has no epochs and cross-validates "
                     "itself"}});
  }
  for (const Arguments& more :
       {Arguments{"--preset", "probe"}, {"--time", "9s"}, {"--folds", "2"}, {"--epochs", "2"}}) {
    expect_refused({{Arguments{"train", "x.json", "-o", "y"} + more,
                     more[0] + ": belongs to a dataset; a recipe takes --set, as --set epochs=N"}});
  }
}

// An option that a model of this kind does not read would be ignored without a word.
TEST(CommandOptions, OfModelsAreRefusedForLayersAndASecondModel) {
  expect_refused({{{"inspect", "-m", small_model(), "vit_tiny_patch16_224"}, "-m: names a model, and so does MODEL"},
                  {{"inspect", "layer:mlp", "-m", small_model()}, "-m: names a model, and so does MODEL"}});
  for (const auto& [option, value] :
       {std::pair("--trace", "random"), std::pair("--tree", ""), std::pair("--keys", ""), std::pair("--table", "cka"),
        std::pair("--config", "vit_tiny_patch16_224"), std::pair("--adapter", "a"), std::pair("--image-size", "64")}) {
    Arguments arguments{"inspect", "layer:mlp", option};
    if (*value != '\0') arguments.push_back(value);
    expect_refused(
        {{arguments, std::string(option) + ": does not apply to a layer, which has --set, --slice and --batch"}});
  }
}

TEST(CommandOptions, OfClassifiersAreRefusedForSegmentAnything) {
  const std::string model = fixture("sam/windows/model.pth");
  for (const auto& [option, value] :
       {std::pair("--zeroshot", ""), std::pair("--labels", "x"), std::pair("--logits", "x.npy"),
        std::pair("--predictions", "x.csv"), std::pair("--report", "x.html")}) {
    Arguments arguments{"eval", "-m", model, "/nowhere", option};
    if (*value != '\0') arguments.push_back(value);
    expect_refused({{arguments, std::string(option) + ": belongs to a classifier; the model segments objects"}});
  }
  const std::string reason = ": does not apply to Segment Anything, whose weights and code determine it";
  for (const auto& [option, value, shown] :
       {std::tuple("--config", "c.json", "--config"), std::tuple("--key-map", "timm", "--key-map"),
        std::tuple("--adapter", "a", "--adapter"), std::tuple("--image-size", "64", "--image-size"),
        std::tuple("--mean", "0.5", "--mean and --std"), std::tuple("--std", "0.5", "--mean and --std"),
        std::tuple("--interpolation", "box", "--interpolation"),
        std::tuple("--crop-pct", "0.5", "--crop-pct and --crop-mode"),
        std::tuple("--crop-mode", "squash", "--crop-pct and --crop-mode")}) {
    expect_refused({{{"inspect", "-m", model, option, value}, shown + reason},
                    {{"convert", model, "-o", scratch_folder() / "f", option, value}, shown + reason}});
  }
  expect_refused({{{"inspect", "-m", model, "--preset", "medsam"}, "--preset" + reason}});
  const std::string bench = ": does not apply to Segment Anything";
  for (const char* option : {"--train", "--checkpointing", "--profile"})
    expect_refused({{{"bench", "sam_vit_b", option}, option + bench}});
  expect_refused({{{"bench", "sam_vit_b", "--tome", "2"}, "--tome" + reason}});
  for (const char* batch : {"2", "1,1"}) {
    expect_refused({{{"bench", "sam_vit_b", "--batch", batch},
                     "--batch: Segment Anything encodes one image at a time: expected 1"}});
  }
}

TEST(Convert, TheOutputSaysWhatIsWritten) {
  const fs::path folder = scratch_folder();
  for (const char* extension : {".ONNX", ".safetensors", ".pth", ".pt", ".bin", ".npz"}) {
    const std::string output = (folder / "m").string() + extension;
    expect_refused({{{"convert", small_model(), "-o", output},
                     "-o: expected a folder, or a file that ends in .onnx, got " + output}});
  }
  run({"convert", small_model(), "-o", folder / "m.v2"});
  EXPECT_TRUE(fs::exists(folder / "m.v2/model.safetensors"));
  for (const Arguments& option : {Arguments{"--opset", "18"},
                                  {"--input", "uint8"},
                                  {"--dynamic-batch"},
                                  {"--activations", "int8"},
                                  {"--single-mask"}}) {
    expect_refused({{Arguments{"convert", small_model(), "-o", folder / "n"} + option,
                     option[0] + ": requires an output that ends in .onnx, as in -o model.onnx"}});
  }
  for (const char* dtype : {"bf16", "fp16"}) {
    expect_refused({{{"convert", small_model(), "-o", folder / "m.onnx", "--dtype", dtype},
                     "--dtype: an ONNX file is fp32 or int8; other types are for a folder"}});
  }
}

TEST(Help, IsACommandToo) {
  EXPECT_EQ(run_program({"help"}).out, run_program({"--help"}).out);
  const ProgramResult of_command = run_program({"help", "knn"});
  EXPECT_EQ(of_command.status, 0);
  EXPECT_EQ(of_command.out, run_program({"knn", "--help"}).out);
  EXPECT_TRUE(contains(of_command.out, "vitrail knn")) << of_command.out;
}

TEST(Suggestions, AreTheNearestNames) {
  for (const auto& [arguments, end] :
       std::vector<std::pair<Arguments, std::string>>{{{"serch", "x"}, "unknown command 'serch'; did you mean search?"},
                                                      {{"zzzzzz"}, "unknown command 'zzzzzz'"},
                                                      {{"knn", "--k"}, "INT missing (Number of neighbours)"}}) {
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.status, 2);
    EXPECT_TRUE(lines_of(result.err).at(0).ends_with(end)) << result.err;
  }
}

TEST(UsageErrors, AreFollowedByWhereHelpIs) {
  const ProgramResult result = run_program({"classify"});
  EXPECT_EQ(result.err,
            "vitrail: error: INPUT is required\n"
            "Run vitrail --help, or vitrail COMMAND --help, for more information.\n");
}

// The first argument that is no option is the command, and arguments behind "--" are files.
TEST(UsageErrors, LookAtTheArgumentsInTheirOrder) {
  const fs::path folder = scratch_folder();
  std::ofstream(folder / "-x.png") << "x";
  EXPECT_EQ(shell("cd '" + folder.string() + "' && $V classify -m $M -- -x.png 2>err"), 1) << "it is no image";
  EXPECT_TRUE(contains(content_of(folder / "err"), "-x.png: "));
  EXPECT_EQ(shell("cd '" + folder.string() + "' && $V embed -x.png -o y.npy 2>err"), 2);
  EXPECT_ERROR(lines_of(content_of(folder / "err")).at(0), "vitrail: error", "the file '-x.png'; write ./-x.png");
  expect_refused({{{"--threads=2", "imspect"}, "unknown command 'imspect'; did you mean inspect?"},
                  {{"classify", "x", "--labls=y"}, "unknown option --labls; did you mean --labels?"},
                  {{"classify", "x", "--quit"}, "unknown option --quit; did you mean --quiet?"},
                  {{"classify", "x", "--zzzzzz"}, "unknown option --zzzzzz"},
                  {{"classify", "--hlep"}, "unknown option --hlep; did you mean --help?"}});
}

TEST(Pull, RefusesWhatIsNoNameOfAModel) {
  for (const char* name : {"model", "a/b/c", "a/b@"}) {
    const ProgramResult result = run_program({"pull", name}, "", {{"HF_HUB_OFFLINE", "1"}});
    EXPECT_EQ(result.status, 1);
    EXPECT_TRUE(contains(result.err, std::string("vitrail pull: expected ORGANISATION/NAME[@REVISION], a model of the "
                                                 "hub, got '") +
                                         name + "'"))
        << result.err;
  }
}

TEST(CacheModels, ThatAreNotThereAreNamedWithTheFolder) {
  const fs::path cache = scratch_folder();
  for (const char* action : {"ls", "verify", "rm", "prune"}) {
    const ProgramResult result =
        run_program({"cache", action, "org/none@main"}, "", {{"HF_HUB_CACHE", cache.string()}});
    EXPECT_EQ(result.status, 1);
    EXPECT_EQ(result.err, "vitrail: error: org/none@main: expected a model in " + cache.string() +
                              ", got none; vitrail cache ls lists them\n");
  }
}

TEST(Info, HasALineForEachArithmeticAndTheThreads) {
  const std::vector<std::string> lines = lines_of(run({"info"}, {{"VITRAIL_CPU", "scalar"}}).out);
  const std::vector<std::string> starts{"version         ", "commit          ", "compiler        ",
                                        "instruction set ", "fp32            ", "half            ",
                                        "int8            ", "threads         ", "libraries       "};
  ASSERT_GE(lines.size(), starts.size());
  for (size_t i = 0; i < starts.size(); ++i) EXPECT_TRUE(lines[i].starts_with(starts[i])) << lines[i];
  const std::string threads = lines[7].substr(16);
  EXPECT_EQ(threads,
            threads.substr(0, threads.find(' ')) + " (of " + threads.substr(0, threads.find(' ')) + " available)");
  for (size_t i = 9; i < lines.size(); ++i) EXPECT_TRUE(lines[i].starts_with("                lib")) << lines[i];
}

TEST(TrainOptions, ATimeIsANumberAboveZeroAndItsUnit) {
  for (const char* time : {"0s", "5", "s", "-1m", "nanh", "infs", "1 m", "1d", "1e5"}) {
    expect_refused({{{"train", "x", "-o", "y", "--time", time},
                     std::string("--time: expected a time, such as 90s, 20m or 1.5h, got '") + time + "'"}});
  }
}

}  // namespace
}  // namespace vitrail::testing
