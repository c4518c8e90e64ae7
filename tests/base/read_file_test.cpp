// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/read_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"

namespace vitrail {
namespace {
namespace fs = std::filesystem;

TEST(ReadFile, GivesTheContentOfAFileOfAnySize) {
  const fs::path path = testing::scratch_folder() / "file";
  for (const size_t size : {0, 1, 4095, 65536, 200000}) {
    const std::string text(size, 'x');
    std::ofstream(path, std::ios::trunc) << text;
    EXPECT_EQ(read_text_file(path), text);
    EXPECT_EQ(read_file(path, size).size(), size);
  }
}

TEST(ReadFile, ReadsAPipeToItsEnd) {
  const fs::path path = testing::scratch_folder() / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const std::string text(150000, 'y');
  std::thread writer([&] { std::ofstream(path) << text; });
  EXPECT_EQ(read_text_file(path), text);
  writer.join();
}

// A pipe without a writer would be waited for.
TEST(ReadFile, OnlyRegularFilesWhereThatIsAsked) {
  const fs::path folder = testing::scratch_folder();
  std::ofstream(folder / "file") << "12345";
  fs::create_symlink("file", folder / "link");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  fs::create_symlink("pipe", folder / "link to a pipe");
  EXPECT_EQ(read_regular_text_file(folder / "file"), "12345");
  EXPECT_EQ(read_regular_text_file(folder / "link", 5), "12345");
  for (const fs::path& path : {folder / "pipe", folder / "link to a pipe", fs::path("/dev/zero")}) {
    EXPECT_ERROR(testing::error_of([&] { read_regular_text_file(path); }), path.string(), "something else");
  }
  EXPECT_TRUE(testing::error_of([&] { read_regular_text_file(folder); }).ends_with("expected a file, got a folder"));
  EXPECT_TRUE(
      testing::error_of([&] { read_regular_text_file(folder / "file", 4); }).ends_with("at most 4 bytes, got more"));
}

TEST(ReadFile, RefusesFoldersMissingFilesAndTooManyBytes) {
  const fs::path folder = testing::scratch_folder();
  std::ofstream(folder / "file") << "12345";
  EXPECT_EQ(read_text_file(folder / "file", 5), "12345");
  for (const auto& [path, limit] : std::vector<std::pair<fs::path, size_t>>{{folder, 10},
                                                                            {folder / "absent", 10},
                                                                            {folder / "file", 4},
                                                                            {"/dev/zero", 100000},
                                                                            {std::string(300, 'x'), 1}}) {
    try {
      read_text_file(path, limit);
      ADD_FAILURE() << path;
    } catch (const Error& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with(path.string())) << error.what();
    }
  }
}

TEST(ReadFile, TheErrorSaysWhatIsWrong) {
  const fs::path folder = testing::scratch_folder(), file = folder / "file";
  std::ofstream(file) << "12345";
  const auto error = [](const fs::path& path, size_t limit) {
    const std::string text = testing::error_of([&] { read_text_file(path, limit); });
    EXPECT_EQ(testing::error_of([&] { read_file(path, limit); }), text);
    return text;
  };
  EXPECT_ERROR(error(folder, 10), folder.string(), "a folder");
  EXPECT_EQ(error(folder / "absent", 10),
            (folder / "absent").string() + ": cannot be opened: No such file or directory");
  EXPECT_ERROR(error(file, 4), file.string(), "more");
  EXPECT_ERROR(error("/dev/zero", 70000), "/dev/zero", "more");
  EXPECT_EQ(read_file("/dev/null", 0).size(), 0u);
}

// A sparse file: its size is known before anything is allocated.
TEST(ReadFile, TheSizeOfAFileIsCheckedFirst) {
  const fs::path file = testing::scratch_folder() / "file";
  std::ofstream(file) << "12345";
  std::error_code unsupported;
  fs::resize_file(file, uint64_t{1} << 42, unsupported);
  if (unsupported) return;  // a file system without files of this size
  EXPECT_ERROR(testing::error_of([&] { read_file(file, 100); }), file.string(), "more");
  EXPECT_ERROR(testing::error_of([&] { read_text_file(file); }), file.string(), "more");
}

TEST(ReadFile, KeepsEveryByte) {
  const fs::path file = testing::scratch_folder() / "file";
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i);
  std::ofstream(file, std::ios::binary) << text;
  EXPECT_EQ(read_text_file(file), text);
  const std::vector<std::byte> bytes = read_file(file, 300);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), text);
}

}  // namespace
}  // namespace vitrail
