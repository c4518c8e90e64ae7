// SPDX-License-Identifier: Apache-2.0
// Mapped files: contents, release, and what cannot be mapped.
#include "vitrail/base/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/paths.h"
#include "vitrail/base/error.h"

namespace vitrail {
namespace {
namespace fs = std::filesystem;

fs::path written(const std::string& contents) {
  const fs::path path = testing::scratch_folder() / "file";
  std::ofstream(path, std::ios::binary) << contents;
  return path;
}

// The message of the Error that opening `path` gives; it must name the path.
std::string refusal(const fs::path& path) {
  try {
    MappedFile file(path);
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(path.string()), std::string::npos) << error.what();
    return error.what();
  }
  ADD_FAILURE() << path << " was mapped";
  return "";
}

TEST(MappedFile, HoldsTheContents) {
  const std::string text("a\0b\nc", 5);
  const MappedFile file(written(text));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()), text);
}

TEST(MappedFile, EmptyFileIsAnEmptySpan) { EXPECT_TRUE(MappedFile(written("")).bytes().empty()); }

TEST(MappedFile, ReleasedPagesReadTheSameAgain) {
  const std::string text(100000, 'x');
  const MappedFile file(written(text + "end"));
  const std::byte* data = file.bytes().data();
  file.release(data, file.bytes().size());
  file.release(data + 10, 5);  // less than a page: nothing to do
  file.release(data + 1, 50000);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(data), file.bytes().size()), text + "end");
}

TEST(MappedFile, MissingFileAndFolderAreErrorsThatSayWhich) {
  const fs::path folder = testing::scratch_folder();
  EXPECT_NE(refusal(folder / "absent").find("No such file"), std::string::npos);
  EXPECT_NE(refusal(folder).find("got a folder"), std::string::npos);
}

TEST(MappedFile, NamedPipeIsAnErrorAndNotAWait) {
  const fs::path pipe = testing::scratch_folder() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_NE(refusal(pipe).find("regular file"), std::string::npos);
  EXPECT_NE(refusal("/dev/zero").find("regular file"), std::string::npos);
}

}  // namespace
}  // namespace vitrail
