// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/read_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

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

}  // namespace
}  // namespace vitrail
