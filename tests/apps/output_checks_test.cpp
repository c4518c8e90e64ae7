// SPDX-License-Identifier: Apache-2.0
// Outputs that would destroy an input or each other, and options that would have no effect.
#include <fstream>

#include "tests/apps/segment_runs.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

// The arguments are refused as a usage error that has `part`.
void expect_refusal(const Arguments& arguments, const std::string& part) {
  const ProgramResult result = run_program(arguments);
  EXPECT_EQ(result.status, 2) << arguments[0] << result.err;
  EXPECT_TRUE(contains(result.err, part)) << arguments[0] << result.err;
}

TEST(Outputs, DoNotReplaceAnInput) {
  const fs::path images = image_folder(2), list = images / "l.csv", link = images / "link.png";
  const std::string a = images / "a.png", before = content_of(a), model = small_model();
  std::ofstream(list) << "a.png,0\nb.png,1\n";
  fs::create_symlink("a.png", link);
  expect_refusal({"attention", "-m", model, a, "-o", a}, "-o: expected another file than the input " + a);
  expect_refusal({"attention", "-m", model, a, "-o", link}, "-o: expected another file than the input");
  expect_refusal({"classify", "-m", model, images / "b.png", a, "--logits", a}, "--logits: expected another file");
  expect_refusal({"eval", "-m", model, list, "--predictions", list}, "--predictions: expected another file");
  EXPECT_EQ(content_of(list), "a.png,0\nb.png,1\n");
  EXPECT_EQ(content_of(a), before);
}

// A command protects all its inputs: the images in a folder, the files of the model.
TEST(Outputs, DoNotReplaceAFileOfAFolderThatIsRead) {
  const fs::path folder = image_folder(2), images = folder / "images", model = folder / "m";
  fs::create_directories(images);
  for (const char* name : {"a.png", "b.png"}) fs::rename(folder / name, images / name);
  fs::copy(small_model(), model);
  const std::string b = images / "b.png", weights = model / "model.safetensors";
  for (const auto& [arguments, output] :
       {std::pair<Arguments, std::string>{{"classify", images, "-m", model, "--logits", b}, b},
        {{"classify", images, "-m", model, "--logits", weights}, weights},
        {{"attention", images / "a.png", "-m", weights, "--raw", weights}, ""}}) {
    for (const Arguments& more : {Arguments{}, Arguments{"--force"}}) {
      const std::string before = content_of(b) + content_of(weights);
      expect_refusal(arguments + more, output.empty() ? "expected another file than the input"
                                       : more.empty() ? "or --force, got another file"
                                                      : "expected another file than one in the input");
      EXPECT_EQ(content_of(b) + content_of(weights), before) << arguments[0];
    }
  }
  run({"embed", images, "-m", model, "-o", images / "x.npy"});  // a new file beside the images
}

TEST(Outputs, MasksDoNotReplaceTheirImages) {
  const fs::path folder = scratch_folder();
  for (const char* name : {"a.png", "b.png"}) fs::copy_file(image_folder(1) / "a.png", folder / name);
  fs::copy_file(folder / "a.png", folder / "b.jpg");  // its overlay would be b.png
  const std::string before = content_of(folder / "a.png");
  for (const Arguments& inputs : {Arguments{folder}, {folder / "a.png"}, {folder / "b.jpg", folder / "b.png"}}) {
    expect_refusal(
        Arguments{"segment", "-m", exact_windows().model} + inputs + Arguments{"--point", "2,2", "-o", folder},
        inputs.size() == 1 && inputs[0] == folder ? "-o: expected a folder outside of the input"
                                                  : "-o: expected another file than the input");
    for (const char* name : {"a.png", "b.png", "b.jpg"}) EXPECT_EQ(content_of(folder / name), before) << name;
  }
}

// Each output of a command, and each file that it reads.
TEST(Outputs, DoNotReplaceAnyFileThatIsRead) {
  const fs::path folder = image_folder(1), image = folder / "a.png", list = folder / "l.csv", names = folder / "n.png",
                 mask = folder / "m.npy", prompts = folder / "p.txt";
  for (const fs::path& file : {list, names, mask, prompts}) std::ofstream(file) << "x\n";
  struct Command {
    Arguments arguments, outputs;
    std::vector<fs::path> inputs;
  };
  for (const Command& command :
       {Command{{"attention", image, "--labels", names}, {"-o", "--raw"}, {image, names}},
        {{"classify", image, "--labels", names}, {"--logits"}, {image, names}},
        {{"eval", list, "--labels", names}, {"--logits", "--predictions", "--report"}, {list, names}},
        {{"embed", image}, {"-o"}, {image}},
        {{"embed", "--text", prompts}, {"-o"}, {prompts}},
        {{"segment", image, "--mask", mask}, {"--logits", "--embedding"}, {mask}}}) {
    for (const std::string& option : command.outputs) {
      for (const fs::path& input : command.inputs) {
        Arguments all = command.arguments;
        all.insert(all.end(), {"-m", "m", option, input});
        expect_refusal(all, option + ": expected another file than the input " + input.string());
      }
    }
  }
  // The list of paths beside an array.
  expect_refusal({"embed", "-m", "m", "--text", prompts, "-o", folder / "p.npy"}, "-o (paths): expected another file");
  expect_refusal({"segment", "-m", "m", "--prompts", prompts, "--embedding", folder / "p.npy"},
                 "--embedding (paths): expected another file");
}

TEST(Outputs, PcaDoesNotReplaceItsImages) {
  const fs::path images = image_folder(2);
  const std::string before = content_of(images / "a.png");
  for (const fs::path& output : {images, images / "colours"})
    expect_refusal({"pca", "-m", small_model(), images, "-o", output}, "-o: expected a folder outside of the input");
  expect_refusal({"pca", "-m", small_model(), images / "a.png", "-o", images},
                 "-o: expected another file than the input");
  EXPECT_EQ(content_of(images / "a.png"), before);
}

TEST(Outputs, AnIndexDoesNotReplaceItsEmbeddings) {
  const fs::path folder = scratch_folder();
  ASSERT_EQ(run_program({"embed", "-m", small_model(), image_folder(2), "-o", folder / "x.npy"}).status, 0);
  const std::string before = content_of(folder / "x.npy"), names = content_of(folder / "x.txt");
  for (const char* output : {"x.npy", "x.txt", "x"})
    expect_refusal({"index", folder / "x.npy", "-o", folder / output}, "expected another file than the input");
  EXPECT_EQ(content_of(folder / "x.npy"), before);
  EXPECT_EQ(content_of(folder / "x.txt"), names);
}

TEST(Outputs, AModelIsNotConvertedOntoItself) {
  const fs::path folder = scratch_folder() / "m";
  ASSERT_EQ(run_program({"convert", small_model(), "-o", folder}).status, 0);
  const std::string before = content_of(folder / "model.safetensors");
  expect_refusal({"convert", folder, "-o", folder, "--dtype", "fp16"}, "expected another file than the input");
  EXPECT_EQ(content_of(folder / "model.safetensors"), before);
}

TEST(Outputs, ATrainingRunIsNotConvertedIntoItself) {
  const fs::path run = scratch_folder() / "run";
  ASSERT_EQ(run_program({"convert", small_model(), "-o", run / "model"}).status, 0);
  const std::string before = content_of(run / "model/model.safetensors");
  expect_refusal({"convert", run, "-o", run / "model", "--dtype", "fp16"}, "expected another file than the input");
  expect_refusal({"convert", run, "-o", run, "--dtype", "fp16"}, "expected another folder than the training run");
  EXPECT_EQ(content_of(run / "model/model.safetensors"), before);
  EXPECT_FALSE(fs::exists(run / "config.json"));
}

TEST(Outputs, TheConfigurationBesideAWeightsFileStays) {
  const fs::path folder = scratch_folder() / "m", weights = folder / "weights.safetensors";
  ASSERT_EQ(run_program({"convert", small_model(), "-o", folder}).status, 0);
  fs::rename(folder / "model.safetensors", weights);
  expect_refusal({"convert", weights, "-o", folder}, "expected another file than the input");
}

TEST(Outputs, DoNotReplaceEachOther) {
  const fs::path images = image_folder(1), folder = scratch_folder();
  const std::string a = images / "a.png", same = folder / "x.png", again = folder / "." / "x.png",
                    model = small_model();
  expect_refusal({"attention", "-m", model, a, "-o", same, "--raw", again},
                 "--raw: expected another file than that of");
  expect_refusal({"eval", "-m", model, images, "--predictions", same, "--report", same}, "--report: expected another");
  EXPECT_FALSE(fs::exists(same));
}

TEST(Outputs, StandardOutputIsForTheResults) {
  const std::string images = image_folder(1), model = small_model();
  expect_refusal({"classify", "-m", model, images, "--logits", "-"}, "--logits: expected a file, got -");
  expect_refusal({"eval", "-m", model, images, "--predictions", "-"}, "--predictions: expected a file, got -");
  expect_refusal({"attention", "-m", model, images + "/a.png", "--raw", "-"}, "--raw: expected a file, got -");
  expect_refusal({"convert", model, "-o", "-"}, "-o: expected a folder, or a file that ends in .onnx, got -");
  expect_refusal({"pca", "-m", model, images, "-o", "-"}, "-o: expected a folder for the overlays, got -");
}

// One overlay of all images is a wrong expectation of `pca -o`, not a folder called x.JPG.
TEST(Outputs, AFolderIsNotCalledAsAnImage) {
  const std::string images = image_folder(1), model = small_model(), file = scratch_folder() / "x.JPG",
                    folder = scratch_folder() / "y.png";
  expect_refusal({"pca", "-m", model, images, "-o", file}, "-o: expected a folder for the overlays, got " + file);
  EXPECT_FALSE(fs::exists(file));
  fs::create_directory(folder);
  EXPECT_EQ(run_program({"pca", "-m", model, images, "-o", folder}).status, 0) << "an existing folder";
}

TEST(Outputs, AFolderIsNotCalledAsAFileOfWeights) {
  for (const char* name : {"m.pth", "m.safetensors", "m.ONNX"})
    expect_refusal({"convert", small_model(), "-o", scratch_folder() / name}, "-o: expected a folder, or a file that");
}

TEST(Options, WithoutEffectBesideOthersAreRefused) {
  const std::string images = image_folder(1), model = small_model(), out = scratch_folder() / "x.png";
  const Arguments attention{"attention", "-m", model, images + "/a.png", "-o", out, "--rollout"};
  for (const auto& [option, value] : {std::pair{"--layer", "0"}, {"--head", "0"}}) {
    Arguments arguments = attention;
    arguments.insert(arguments.end(), {option, value});
    expect_refusal(arguments, option);
  }
  expect_refusal({"knn", "-m", model, images, images, "--plain", "--temperature", "1"}, "--temperature");
  expect_refusal({"eval", "-m", model, images, "--template", "a {}"}, "--zeroshot");
  expect_refusal({"convert", model, "-o", out, "--tolerance", "1"}, "--calibrate");
  expect_refusal({"train", images, "-o", out, "--allow-changes"}, "--resume");
  expect_refusal({"embed", "-m", model, "--text", "cat", "-o", out + ".npy", "--tokens", "patch"}, "--text");
}

TEST(Options, NumbersOutsideOfTheirRangeAreRefused) {
  const std::string images = image_folder(1);
  for (const char* value : {"-1.001", "1.001", "inf", "0.5x", "x"})
    expect_refusal({"duplicates", images, "--threshold", value},
                   std::string("--threshold: expected a number from -1 to 1, got '") + value + "'");
  expect_refusal({"duplicates", images, "--threshold", "nan"},
                 "--threshold: expected a number from -1 to 1, got 'nan'");
  expect_refusal({"pca", images, "-o", "x", "--opacity", "nan"}, "--opacity: expected a number from 0 to 1");
}

// Who deletes the duplicates would delete the only copy.
TEST(Duplicates, AnImageIsNotItsOwn) {
  const fs::path images = image_folder(2);
  fs::create_symlink("a.png", images / "link.png");
  const ProgramResult result = run_program(
      {"duplicates", "-m", small_model(), images, images / "a.png", images / "." / "b.png", "--threshold", "1"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(contains(result.err, "3 images are named several times and counted once")) << result.err;
  EXPECT_TRUE(contains(result.err, "2 images, 0 groups")) << result.err;
}

TEST(Eval, WithoutAReadableImageIsAnError) {
  const fs::path root = scratch_folder();
  for (const char* name : {"0/a.png", "1/b.png"}) {
    fs::create_directories((root / name).parent_path());
    std::ofstream(root / name) << "no image";
  }
  const fs::path predictions = root / "p.csv", logits = root / "l.npy";
  std::ofstream(predictions) << "file,label,prediction,of another run";
  std::ofstream(logits) << "\x93NUMPY of another run";
  const ProgramResult result = run_program(
      {"eval", "-m", small_model(), root, "--format", "json", "--predictions", predictions, "--logits", logits});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(contains(result.err, "expected images that can be read, got none")) << result.err;
  for (const fs::path& file : {predictions, logits}) EXPECT_TRUE(contains(content_of(file), "of another run"));
}

TEST(Classify, AnEmptyListIsSaid) {
  const ProgramResult result = run_program({"classify", "-m", small_model(), "-"});
  EXPECT_EQ(result.status, 0);
  EXPECT_TRUE(contains(result.err, "no images")) << result.err;
}

TEST(Classify, AListMayBeginWithAByteOrderMark) {
  const std::string image = image_folder(1) / "a.png";
  const ProgramResult result =
      run_program({"classify", "-m", small_model(), "-", "--format", "json"}, "\xef\xbb\xbf" + image + "\n");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(json_lines(result.out).at(0)["path"], image);
}

}  // namespace
}  // namespace vitrail::testing
