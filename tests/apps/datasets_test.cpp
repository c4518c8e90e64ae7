// SPDX-License-Identifier: Apache-2.0
// What commands say about the datasets and folders they read.
#include <fstream>

#include "tests/apps/cli_fixture.h"
#include "vitrail/base/npy.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

// Moves the n images of image_folder(n) to these paths below a new folder.
fs::path dataset_of(const std::vector<std::string>& paths) {
  const fs::path images = image_folder(static_cast<int>(paths.size())), root = scratch_folder();
  for (size_t i = 0; i < paths.size(); ++i) {
    fs::create_directories((root / paths[i]).parent_path());
    fs::rename(images / (std::string(1, static_cast<char>('a' + i)) + ".png"), root / paths[i]);
  }
  return root;
}

void write_text(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

TEST(Datasets, EvalTellsWhatItReads) {
  const fs::path root = dataset_of({"Training/3/a.png", "Testing/3/b.png", "Testing/07/c.png"});
  const ProgramResult result = run_program({"eval", "--format", "json", "-m", small_model(), root});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(json_lines(result.out).at(0)["images"], 2);
  EXPECT_TRUE(contains(result.err, "evaluating 2 images of " + root.string() + "/Testing, 2 classes: ")) << result.err;
  EXPECT_EQ(run_program({"eval", "--format", "json", "-m", small_model(), root, "--quiet"}).err, "");
}

TEST(Datasets, KnnWithoutATrainSplitIsAnError) {
  const fs::path root = dataset_of({"val/a/1.png", "val/b/2.png", "test/a/3.png", "test/b/4.png"});
  const ProgramResult result = run_program({"knn", "-m", small_model(), root, root, "--k", "1"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(contains(result.err,
                       "expected a split train, or another by --split NAME (train: --set data.train_split=NAME), got "
                       "these splits: test, val"))
      << result.err;
}

// Every prediction would be right.
TEST(Datasets, KnnOfOneClassIsAnError) {
  const fs::path root = dataset_of({"train/a/1.png", "train/a/2.png", "test/a/3.png"}), list = root / "list.csv";
  write_text(list, "train/a/1.png,2\ntrain/a/2.png,2\n");
  for (const auto& [train, name] : {std::pair(root, "a"), std::pair(list, "2")}) {
    const ProgramResult result = run_program({"knn", "-m", small_model(), train, root, "--k", "1"});
    EXPECT_EQ(result.status, 1);
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(contains(
        result.err, train.string() + ": expected images of at least two classes, got one class: " + std::string(name)))
        << result.err;
  }
}

TEST(Datasets, KnnTellsOfTestImagesAmongTheTrainingImages) {
  const fs::path root = dataset_of({"a/1.png", "b/2.png", "b/3.png"});
  const ProgramResult result = run_program({"knn", "-m", small_model(), root, root, "--k", "1"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(contains(result.err, "warning: 3 of 3 test images are also training images")) << result.err;
  const fs::path other = dataset_of({"a/1.png", "b/2.png"});
  std::ofstream(other / "a/1.png", std::ios::app) << "x";
  std::ofstream(other / "b/2.png", std::ios::app) << "x";
  EXPECT_FALSE(contains(run_program({"knn", "-m", small_model(), root, other, "--k", "1"}).err, "are also training"));
}

// The indices name the classes: folders of other names may not be numbered from 0 beside them.
TEST(Datasets, KnnTakesTheClassesOfAListOfNumbers) {
  const fs::path root = dataset_of({"2/1.png", "5/2.png"}), list = root / "train.csv";
  write_text(list, "2/1.png,2\n5/2.png,5\n");
  const ProgramResult numbers = run_program({"knn", "-m", small_model(), list, root, "--k", "1"});
  ASSERT_EQ(numbers.status, 0) << numbers.err;
  EXPECT_EQ(json_lines(numbers.out).at(0)["top1"], 1.0);
  const fs::path named = dataset_of({"cat/1.png", "dog/2.png"});
  const ProgramResult names = run_program({"knn", "-m", small_model(), list, named, "--k", "1"});
  EXPECT_TRUE(contains(names.err, "none of the 2 class folders names one of the model's 2 labels")) << names.err;
}

TEST(Datasets, FilesThatAreLeftOutAreCountedByKind) {
  const fs::path root = dataset_of({"x/a.png", "y/b.PNG"});
  for (const char* name : {"x/1.heic", "x/2.HEIC", "y/3.svg", "x/._a.png", "__MACOSX/x/._a.png", "x/.DS_Store"}) {
    write_text(root / name, "no image");
  }
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"classify", "--format", "csv"}, {"embed", "-o", (scratch_folder() / "f.npy").string()}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"-m", small_model(), root.string()});
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_TRUE(contains(result.err, "warning: 3 files left out: 2 .heic, 1 .svg")) << result.err;
  }
}

TEST(Datasets, ClassFoldersThatFitNoModelAreAnError) {
  const fs::path root = dataset_of({"cat/1.png", "dog/2.png"});
  const ProgramResult result = run_program({"eval", "--format", "json", "-m", small_model(), root});
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(result.err, "as many folders as its 10 classes, got 2 class folders: 'cat', 'dog'"))
      << result.err;
}

// exif_6.png and exif_1.png have the same pixels; the orientation of exif_6.png is a rotation by 90 degrees.
TEST(Datasets, ExifTurnsTheImagesOfEval) {
  const auto logits = [](const std::string& image, std::vector<std::string> more) {
    const fs::path root = scratch_folder();
    fs::create_directories(root / "0");
    fs::copy_file(fixture("image/decode/" + image), root / "0" / image);
    std::vector<std::string> arguments{"eval",        "--format", "json",     "-m",
                                       small_model(), root,       "--logits", (root / "l.npy").string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.status, 0) << result.err;
    return read_npy(root / "l.npy").f32;
  };
  EXPECT_EQ(logits("exif_6.png", {}), logits("exif_1.png", {}));
  EXPECT_EQ(logits("exif_1.png", {"--exif"}), logits("exif_1.png", {}));
  EXPECT_NE(logits("exif_6.png", {"--exif"}), logits("exif_6.png", {}));
}

}  // namespace
}  // namespace vitrail::testing
