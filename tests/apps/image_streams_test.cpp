// SPDX-License-Identifier: Apache-2.0
// Images of several sizes in a stream, images on standard input, messages of images, and words of a command line.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <regex>

#include "tests/apps/cli_fixture.h"
#include "tests/apps/option_effects.h"
#include "tests/apps/shell.h"
#include "tests/support/sam_fixture.h"
#include "tests/support/terminal.h"
#include "tests/train/training_fixture.h"
#include "vitrail/base/npy.h"
#include "vitrail/image/encode.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Its images keep their sizes, which have to be multiples of four pixels.
std::string model_without_resize() {
  const fs::path folder = with_config("timm_dynamic", [](json& config) { config.erase("pretrained_cfg"); });
  std::ofstream(folder / "preprocessor_config.json") << R"({"do_resize": false, "do_center_crop": false,
    "do_rescale": true, "do_normalize": true, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5],
    "resample": 3, "image_processor_type": "ViTImageProcessor"})";
  return folder;
}

// Inputs of one size run together; each has its own result, in the order of the images, beside failures.
TEST(ImageStream, ImagesOfSeveralSizesKeepTheirOrder) {
  const fs::path folder = scratch_folder(), files = scratch_folder();
  const int64_t widths[] = {16, 16, 24, 24, 24, 16, 20};
  for (size_t i = 0; i < 7; ++i) write_noise(folder / (std::to_string(i) + ".png"), widths[i], 16, i + 1);
  std::ofstream(folder / "3b.png") << "no image";
  const std::string model = model_without_resize();
  const auto logits = [&](const Arguments& more, int status) {
    const ProgramResult result = run_program(Arguments{"classify", "-m", model, "--logits", files / "l.npy"} + more);
    EXPECT_EQ(result.status, status) << result.err;
    return read_npy(files / "l.npy").f32;
  };
  for (const char* batch : {"1", "2", "8"}) {
    const std::vector<float> all = logits({folder, "--batch", batch}, 1);
    ASSERT_EQ(all.size(), 80U);
    for (size_t row = 0; row < 8; ++row) {
      if (row == 4) {
        EXPECT_TRUE(std::isnan(all[40]));
        continue;
      }
      const std::string name = std::to_string(row < 4 ? row : row - 1) + ".png";
      const std::vector<float> one = logits({folder / name}, 0);
      for (size_t i = 0; i < 10; ++i) EXPECT_NEAR(all[10 * row + i], one[i], 1e-5) << batch << " " << name;
    }
  }
  const std::string name = (folder / "3b.png").string();
  const ProgramResult result = run_program({"classify", "-m", model, folder, "--format", "json"});
  const auto objects = json_lines(result.out);
  ASSERT_EQ(objects.size(), 8U);
  EXPECT_EQ(objects[4]["path"], name);
  EXPECT_EQ(objects[3]["path"], (folder / "3.png").string());
  // The path is in the message once.
  EXPECT_TRUE(result.err.starts_with("vitrail: error: " + name + ": expected ")) << result.err;
  EXPECT_EQ(result.err.find(name, 20), std::string::npos) << result.err;
}

TEST(ImageStream, ARequestThatTheModelRefusesIsOneErrorForAllImages) {
  const fs::path images = image_folder(3), out = scratch_folder() / "out";
  const std::string block = "vitrail: error: layer: expected a block from 0 to 1 (or negative, from the end), got ";
  for (const Arguments& command : {Arguments{"embed", "-o", out / "f.npy"}, {"pca", "-o", out}}) {
    fs::create_directories(out);
    const ProgramResult result = run_program(command + Arguments{"-m", small_model(), images, "--layer", "2"});
    EXPECT_EQ(result.status, 1) << command[0];
    EXPECT_EQ(result.err, block + "2\n") << command[0];
  }
  EXPECT_EQ(run_program({"embed", "-m", small_model(), images, "-o", out / "f.npy", "--layer", "-1,-3"}).err,
            block + "-3\n");
}

// An array has one shape: that of the first image.
TEST(EmbedArray, ImagesOfAnotherShapeAreErrors) {
  const fs::path folder = scratch_folder(), files = scratch_folder();
  for (const auto& [name, width] : {std::pair("a.png", 16), std::pair("b.png", 24), std::pair("c.png", 16)})
    write_noise(folder / name, width, 16, 3);
  const std::string model = model_without_resize();
  for (const char* file : {"f.npy", "f.npz", "f.csv"}) {
    const ProgramResult result = run_program({"embed", "-m", model, folder, "--tokens", "patch", "-o", files / file});
    EXPECT_EQ(result.status, 1) << file;
    EXPECT_EQ(result.err, "vitrail: error: " + (folder / "b.png").string() +
                              ": embed: expected features of shape [4, 4, 18] for all images, got [4, 6, 18]\n");
  }
  const NpyArray array = read_npy(files / "f.npy");
  ASSERT_EQ(array.shape, (std::vector<int64_t>{3, 4, 4, 18}));
  for (size_t row = 0; row < 3; ++row) EXPECT_EQ(std::isnan(array.f32[row * 16 * 18]), row == 1) << row;
  run({"embed", "-m", model, folder, "-o", files / "f.npy"});
}

TEST(Segment, AnImageOnStandardInputHasTheMasksOfItsFile) {
  const SamFixture sam = sam_fixture("exact_windows");
  const fs::path photo = scratch_folder() / "photo.png", out = scratch_folder() / "out";
  image::write_png(photo, sam.image);
  const Arguments arguments{"segment", "-m", sam.model, "--point", "30,20", "--format", "json"};
  const json file = json_of(arguments + Arguments{photo});
  const ProgramResult piped = run_program(arguments + Arguments{"-", "-o", out}, content_of(photo));
  ASSERT_EQ(piped.status, 0) << piped.err;
  const json input = json_lines(piped.out).at(0);
  EXPECT_EQ(input["image"], "-");
  EXPECT_EQ(input["masks"], file["masks"]);
  EXPECT_TRUE(fs::exists(out / "image.png"));
}

// The same file with and without its orientation has two embeddings.
TEST(SegmentCache, OrientationsAreKeptApart) {
  const fs::path cache = scratch_folder(), photo = fixture("image/decode/exif_6.png");
  const Arguments arguments{
      "segment", "-m", sam_fixture("exact_windows").model, photo, "--point", "3,2", "--format", "json",
      "--cache", cache};
  const json stored = json_of(arguments), turned = json_of(arguments + Arguments{"--exif"});
  EXPECT_NE(stored["masks"], turned["masks"]);
  EXPECT_EQ(std::distance(fs::directory_iterator(cache), fs::directory_iterator()), 2);
  EXPECT_EQ(json_of(arguments), stored);
  EXPECT_EQ(json_of(arguments + Arguments{"--exif"}), turned);
}

// Words of letters, digits and these signs need no quotes in a shell; all others have them.
TEST(CommandLine, IsQuotedWhereAShellNeedsIt) {
  const fs::path root = scratch_folder();
  for (const auto& [name, quoted] : {std::pair("aZ09._-=,:+@%", false), std::pair("a;b", true), std::pair("a$b", true),
                                     std::pair("a~b", true), std::pair("a#b", true), std::pair("a*b", true)}) {
    const fs::path folder = root / name;
    fs::create_directories(folder / "0");
    fs::copy_file(noise_folder() / "a.png", folder / "0/a.png");
    run({"eval", "-m", small_model(), folder, "--report", root / "r.html", "--quiet"});
    const std::string path = quoted ? "'" + folder.string() + "'" : folder.string();
    EXPECT_TRUE(
        contains(content_of(root / "r.html"), "<td>vitrail eval -m " + small_model() + " " + path + " --report "))
        << name;
  }
}

// The status line of a check counts bytes.
TEST(CacheTerminal, VerifyCountsBytes) {
  const fs::path cache = scratch_folder(), model = cache / "models--org--name";
  const std::string commit(40, 'c'), blob(40, 'a');
  for (const fs::path& folder : {fs::path("refs"), fs::path("blobs"), "snapshots" / fs::path(commit)})
    fs::create_directories(model / folder);
  std::ofstream(model / "refs/main") << commit;
  std::ofstream(model / "blobs" / blob) << std::string(1500, 'x');
  fs::create_symlink("../../blobs/" + blob, model / "snapshots" / commit / "config.json");
  const TerminalResult result =
      run_in_terminal({"cache", "verify"}, {.environment = {{"HF_HUB_CACHE", cache.string()}}});
  EXPECT_EQ(result.status, 1) << "its digest is another one";
  EXPECT_TRUE(std::regex_search(result.transcript, std::regex("verify (━){10} 1[.]5 kB/1[.]5 kB")))
      << result.transcript;
  const TerminalResult quiet =
      run_in_terminal({"cache", "verify", "--quiet"}, {.environment = {{"HF_HUB_CACHE", cache.string()}}});
  EXPECT_FALSE(contains(quiet.transcript, "━")) << quiet.transcript;
}

// The phases of a probe.
TEST(TrainTerminal, AProbeTellsWhatItDoes) {
  const fs::path images = train::make_images(8, 2), run_folder = scratch_folder() / "run";
  const TerminalResult result =
      run_in_terminal({"train", images, "-o", run_folder, "-m", small_model(), "--preset", "probe", "--threads", "1"},
                      {.columns = 100});
  EXPECT_EQ(result.status, 0) << result.transcript;
  EXPECT_TRUE(std::regex_search(result.transcript, std::regex("computing features (━|╌){20} [0-9]+/[0-9]+  [0-9]+:")))
      << result.transcript;
  EXPECT_TRUE(std::regex_search(result.transcript, std::regex("cross-validating (━|╌){20} [0-9]+/[0-9]+  [0-9]+:")))
      << result.transcript;
  EXPECT_FALSE(contains(result.transcript, "loss nan")) << result.transcript;
  EXPECT_FALSE(contains(result.transcript, "{\"")) << "JSON is for programs: " << result.transcript;
}

// What ends a command, and what it ignores because nohup did so before.
TEST(Signals, EndTheCommandOrAreIgnoredFromItsStart) {
  const fs::path folder = scratch_folder(), images = image_folder(2);
  fs::create_directories(folder / "out");
  ASSERT_EQ(::mkfifo((folder / "list").c_str(), 0600), 0);
  ::setenv("D", folder.c_str(), 1);
  ::setenv("I", images.c_str(), 1);
  const std::string wait =
      "exec 4>$D/list; echo $I/a.png >&4; while kill -0 $pid && ! grep -q a.png $D/csv; do "
      "sleep 0.1; done; ";
  EXPECT_EQ(shell("trap '' HUP; : >$D/csv; $V classify -m $M - --format csv <$D/list >>$D/csv 2>/dev/null & pid=$!; " +
                  wait + "kill -HUP $pid; echo $I/b.png >&4; exec 4>&-; wait $pid"),
            0);
  EXPECT_TRUE(contains(content_of(folder / "csv"), "b.png,1,")) << content_of(folder / "csv");
  EXPECT_EQ(shell("ulimit -c 0; : >$D/csv; env --default-signal $V classify -m $M - --format csv --logits $D/out/l.npy "
                  "<$D/list >>$D/csv 2>/dev/null & pid=$!; " +
                  wait + "kill -QUIT $pid; wait $pid"),
            128 + SIGQUIT);
  EXPECT_TRUE(fs::is_empty(folder / "out")) << "a temporary file is left";
}

}  // namespace
}  // namespace vitrail::testing
