// SPDX-License-Identifier: Apache-2.0
// --force: without it a command replaces only files that commands of its kind wrote, also those beside the one of -o.
#include <fstream>

#include "tests/apps/option_effects.h"
#include "tests/apps/segment_runs.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

const std::string kAnnotations = R"({"images": [], "annotations": ["a week of work"]})";

// A file that somebody else wrote makes the command fail, and stays.
void expect_kept(const Arguments& command, const fs::path& file, const std::string& content) {
  std::ofstream(file) << content;
  const ProgramResult result = run_program(command);
  EXPECT_EQ(result.status, 2) << result.err;
  EXPECT_TRUE(contains(result.err, "or --force, got another file, " + file.string())) << result.err;
  EXPECT_EQ(content_of(file), content);
  fs::remove(file);
}

// --force replaces it; what the command wrote needs no --force.
void expect_forced(const Arguments& command, const fs::path& file) {
  expect_kept(command, file, "somebody's work\n");
  std::ofstream(file) << "somebody's work\n";
  run(command + Arguments{"--force"});
  run(command);
  EXPECT_FALSE(contains(content_of(file), "somebody's work"));
}

void check_classify() {
  const fs::path logits = scratch_folder() / "x.npy";
  expect_forced({"classify", "-m", small_model(), noise_folder(), "--logits", logits}, logits);
}

void check_embed() {
  for (const char* name : {"x.npy", "x.npz", "x.csv"}) {
    const fs::path output = scratch_folder() / name;
    expect_forced({"embed", "-m", small_model(), noise_folder(), "-o", output}, output);
  }
}

void check_attention() {
  const fs::path map = scratch_folder() / "x.png", raw = scratch_folder() / "x.npy";
  const Arguments attention{"attention", "-m", small_model(), noise_folder() / "a.png"};
  expect_forced(attention + Arguments{"-o", map}, map);
  expect_forced(attention + Arguments{"--raw", raw}, raw);
}

void check_explain() {
  const fs::path folder = scratch_folder();
  const Arguments explain{"explain", "-m", small_model(), noise_folder() / "a.png", "-o"};
  expect_forced(explain + Arguments{folder / "x.html"}, folder / "x.html");
  expect_forced(explain + Arguments{folder}, folder / "a.html");
}

void check_eval() {
  const fs::path data = noise_dataset(1, 5), folder = scratch_folder();
  for (const auto& [option, name] :
       {std::pair("--logits", "x.npy"), std::pair("--predictions", "x.csv"), std::pair("--report", "x.html")})
    expect_forced({"eval", "-m", small_model(), data, option, folder / name}, folder / name);
}

void check_audit() {
  const fs::path data = noise_dataset(1, 5), folder = scratch_folder();
  for (const auto& [option, name] : {std::pair("--scores", "x.csv"), std::pair("--report", "x.html")})
    expect_forced({"audit", "-m", small_model(), data, option, folder / name}, folder / name);
}

void check_search() {
  const fs::path folder = scratch_folder(), page = folder / "x.html";
  run({"embed", "-m", small_model(), noise_folder(), "-o", folder / "a.npy"});
  run({"index", folder / "a.npy", "-o", folder / "a.index"});
  expect_forced({"search", "-m", small_model(), folder / "a.index", noise_folder(), "--report", page}, page);
}

void check_pca() {
  const fs::path folder = scratch_folder();
  expect_forced({"pca", "-m", small_model(), noise_folder(), "-o", folder}, folder / "a.png");
  expect_forced({"pca", "-m", small_model(), noise_folder(), "-o", folder, "--raw"}, folder / "a.npy");
}

void check_segment() {
  const fs::path folder = scratch_folder();
  const Arguments segment{"segment", "-m", exact_windows().model, photo_file(), "--point", "5,5"};
  expect_forced(segment + Arguments{"--logits", folder / "x.npy"}, folder / "x.npy");
  expect_forced(segment + Arguments{"--embedding", folder / "e.npy"}, folder / "e.npy");
  for (const auto& [kind, name] : {std::pair("overlay", "photo.png"), std::pair("coco", "coco.json"),
                                   std::pair("sa1b", "photo.json"), std::pair("polygons", "photo.geojson")})
    expect_forced(segment + Arguments{"-o", folder, "--write", kind}, folder / name);
}

void check_index() {
  const fs::path arrays = scratch_folder(), output = scratch_folder() / "x";
  run({"embed", "-m", small_model(), noise_folder(), "-o", arrays / "a.npy"});
  for (const char* dtype : {"fp32", "int8"}) {
    expect_forced({"index", arrays / "a.npy", "-o", output, "--dtype", dtype}, output);
    fs::remove(output);
  }
}

void check_inspect() {
  const fs::path trace = scratch_folder() / "x.npz";
  expect_forced({"inspect", small_model(), "--trace", "random", "-o", trace}, trace);
}

void check_convert() {
  const fs::path folder = scratch_folder() / "m";
  fs::create_directories(folder);
  expect_forced({"convert", small_model(), "-o", folder}, folder / "config.json");
  fs::remove(folder / "model.safetensors");
  expect_forced({"convert", small_model(), "-o", folder}, folder / "model.safetensors");
  expect_forced({"convert", small_model(), "-o", folder / "x.onnx"}, folder / "x.onnx");
}

// Runs of a command that writes ARRAY, LIST and RECORD over all that earlier ones may have left.
void expect_replaced(const Arguments& command, const fs::path& array, const fs::path& list, const fs::path& record) {
  run(command);
  const std::string paths = content_of(list), model = content_of(record);
  const std::vector<std::vector<fs::path>> interrupted{
      {}, {array}, {list}, {record}, {array, list}, {list, record}, {array, record, list}};
  for (const std::vector<fs::path>& missing : interrupted) {
    for (const fs::path& file : missing) fs::remove(file);
    run(command);
    EXPECT_EQ(content_of(list), paths);
    EXPECT_EQ(content_of(record), model);
  }
  for (const fs::path& file : {array, list, record}) std::ofstream(file, std::ios::trunc).flush();  // empty
  run(command);
  EXPECT_EQ(content_of(list), paths);
  EXPECT_EQ(content_of(record), model);
}

TEST(Companions, OfEmbed) {
  const fs::path folder = scratch_folder(), array = folder / "x.npy", list = folder / "x.txt",
                 record = folder / "x.json";
  const Arguments embed{"embed", "-m", small_model(), noise_folder(), "-o", array};
  for (const std::string& content : {kAnnotations, std::string("no JSON"), std::string("[]")})
    expect_kept(embed, record, content);
  expect_kept(embed, list, "my notes\n");
  expect_replaced(embed, array, list, record);
}

TEST(Companions, OfAnIndex) {
  const fs::path arrays = scratch_folder(), folder = scratch_folder(), index = folder / "x", list = folder / "x.txt",
                 record = folder / "x.json";
  run({"embed", "-m", small_model(), noise_folder(), "-o", arrays / "a.npy"});
  const Arguments command{"index", arrays / "a.npy", "-o", index};
  expect_kept(command, record, kAnnotations);
  expect_kept(command, list, "my notes\n");
  expect_replaced(command, index, list, record);
}

// segment writes no record: a file of that name stays.
TEST(Companions, OfSegment) {
  const fs::path folder = scratch_folder(), array = folder / "x.npy", list = folder / "x.txt",
                 record = folder / "x.json";
  const Arguments segment{"segment", "-m", exact_windows().model, image_folder(1) / "a.png", "--embedding", array};
  expect_kept(segment, list, "my notes\n");
  std::ofstream(record) << kAnnotations;
  for (int i = 0; i < 2; ++i) run(segment);
  EXPECT_TRUE(contains(content_of(list), "a.png"));
  EXPECT_EQ(content_of(record), kAnnotations);
}

// All lists are checked before the first shard.
TEST(Companions, OfShards) {
  const fs::path images = image_folder(1), folder = scratch_folder();
  for (const char* name : {"1.tar", "2.tar"})
    ASSERT_EQ(shell("tar -C '" + images.string() + "' -cf '" + (images / name).string() + "' a.png"), 0);
  const Arguments embed{"embed", "-m", small_model(), images / "1.tar", images / "2.tar", "-o", folder};
  for (const std::string& content : {std::string("my notes\n"), kAnnotations + "\n"})
    expect_kept(embed, folder / "2.jsonl", content);
  std::ofstream(folder / "1.jsonl").flush();  // empty
  run(embed);
  fs::remove(folder / "2.npy");
  run(embed);
  EXPECT_TRUE(fs::exists(folder / "2.npy"));
}

}  // namespace

OptionEffects output_option_effects() {
  return {{"classify", "--force", check_classify},   {"embed", "--force", check_embed},
          {"attention", "--force", check_attention}, {"explain", "--force", check_explain},
          {"eval", "--force", check_eval},           {"pca", "--force", check_pca},
          {"audit", "--force", check_audit},         {"search", "--force", check_search},
          {"segment", "--force", check_segment},     {"index", "--force", check_index},
          {"inspect", "--force", check_inspect},     {"convert", "--force", check_convert}};
}

}  // namespace vitrail::testing
