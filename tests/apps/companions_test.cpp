// SPDX-License-Identifier: Apache-2.0
// The files that embed, index and segment write beside the one of -o replace only files of their own kind.
#include <fstream>

#include "tests/apps/option_effects.h"
#include "tests/apps/segment_runs.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

const std::string kAnnotations = R"({"images": [], "annotations": ["a week of work"]})";

// A file that somebody else wrote makes the command fail, and stays the only file.
void expect_kept(const Arguments& command, const fs::path& file, const std::string& content) {
  std::ofstream(file) << content;
  const std::string message = refusal(command);
  EXPECT_TRUE(contains(message, file.string() + ": expected no file, or the ")) << message;
  EXPECT_TRUE(contains(message, ", got another file")) << message;
  EXPECT_EQ(content_of(file), content);
  EXPECT_EQ(std::distance(fs::directory_iterator(file.parent_path()), {}), 1);
  fs::remove(file);
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
}  // namespace vitrail::testing
