// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run_folder_internal.h"

#include "tests/train/training_fixture.h"

namespace vitrail::train {
namespace {

TEST(RunFolder, PathsThatCannotBeFoldersAreErrorsThatNameThemAndTheReason) {
  const fs::path folder = testing::scratch_folder();
  fs::create_symlink("itself", folder / "itself");
  write_file(folder / "file", "text");
  const auto expect = [](const fs::path& path, const char* reason) {
    const std::string message = error_of([&] { const RunFolder run(path); });
    EXPECT_TRUE(contains(message, path.string()) && contains(message, reason)) << message;
  };
  expect(folder / "itself", "Too many levels of symbolic links");
  expect(folder / "itself/run", "Too many levels of symbolic links");
  expect(folder / std::string(300, 'n'), "File name too long");
  expect(folder / std::string(300, 'n') / "run", "File name too long");
  expect(folder / std::string(5000, 'n'), "File name too long");
  expect(folder / "file", "Not a directory");
  expect(folder / "file/run", "Not a directory");
  expect("/proc/run", "cannot be created");
}

TEST(RunFolder, ALinkToTheFolderItselfIsAllowed) {
  const fs::path folder = testing::scratch_folder();
  fs::create_directories(folder / "disk");
  fs::create_directory_symlink(folder / "disk", folder / "run");
  const RunFolder run(folder / "run");
  EXPECT_FALSE(run.holds_run());
  EXPECT_TRUE(fs::exists(folder / "disk/checkpoints"));
}

TEST(RunFolder, OtherFilesAndLinksBesideTheRunAreKept) {
  const fs::path folder = testing::scratch_folder();
  write_file(folder / "notes.txt", "text");
  fs::create_symlink("/nowhere", folder / "data");
  const RunFolder run(folder);
  run.remove_temporary_files();
  EXPECT_EQ(read_text(folder / "notes.txt"), "text");
  EXPECT_TRUE(fs::is_symlink(folder / "data"));
}

}  // namespace
}  // namespace vitrail::train
