// SPDX-License-Identifier: Apache-2.0
// Contents of mapped files, released pages, and errors for files that cannot be mapped.
#include "vitrail/base/mapped_file_internal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/base/file_guard.h"

namespace vitrail {
namespace {
namespace fs = std::filesystem;

fs::path file_with(const std::string& contents) {
  const fs::path path = testing::scratch_folder() / "file";
  std::ofstream(path, std::ios::binary) << contents;
  return path;
}

// Returns the message of the Error that opening `path` throws, and checks that it names the path.
std::string open_error(const fs::path& path) {
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
  const MappedFile file(file_with(text));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()), text);
}

TEST(MappedFile, EmptyFileIsAnEmptySpan) { EXPECT_TRUE(MappedFile(file_with("")).bytes().empty()); }

TEST(MappedFile, ReleasedPagesKeepTheirContents) {
  const std::string text(100000, 'x');
  const MappedFile file(file_with(text + "end"));
  const std::byte* data = file.bytes().data();
  file.release(data, file.bytes().size());
  file.release(data + 10, 5);  // less than a page: nothing to do
  file.release(data + 1, 50000);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(data), file.bytes().size()), text + "end");
}

TEST(MappedFile, PrefetchedRangesKeepTheirContents) {
  const std::string text(20000, 'x');
  const MappedFile file(file_with(text));
  const std::byte* data = file.bytes().data();
  for (const auto& [first, size] : {std::pair{0, 20000}, {5000, 1}, {19999, 1}, {4096, 0}})
    file.prefetch(data + first, size);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(data), file.bytes().size()), text);
}

size_t count_open_descriptors() {
  const fs::directory_iterator entries("/proc/self/fd");
  return static_cast<size_t>(std::distance(fs::begin(entries), fs::end(entries)));
}

TEST(MappedFile, ClosesItsDescriptorAlsoAfterAnError) {
  const fs::path path = file_with("text");
  const size_t before = count_open_descriptors();
  for (int i = 0; i < 3; ++i) {
    const MappedFile file(path);
    open_error(testing::scratch_folder());
    open_error("/dev/null");
  }
  EXPECT_EQ(count_open_descriptors(), before);
}

TEST(MappedFile, MissingFileAndFolderAreDistinctErrors) {
  const fs::path folder = testing::scratch_folder();
  EXPECT_NE(open_error(folder / "absent").find("No such file"), std::string::npos);
  EXPECT_NE(open_error(folder).find("got a folder"), std::string::npos);
}

TEST(MappedFile, NamedPipeIsAnErrorAndDoesNotBlock) {
  const fs::path pipe = testing::scratch_folder() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_NE(open_error(pipe).find("regular file"), std::string::npos);
  EXPECT_NE(open_error("/dev/zero").find("regular file"), std::string::npos);
}

TEST(FileGuard, AChangedFileIsAnErrorAndAReplacedOneIsNot) {
  const fs::path folder = testing::scratch_folder();
  std::ofstream(folder / "kept") << "first";
  {
    const MappedFile kept(folder / "kept");
    std::ofstream(folder / "other") << "another";
    fs::rename(folder / "other", folder / "kept");
    EXPECT_NO_THROW(check_mapped_files());
  }
  const MappedFile file(folder / "kept");
  EXPECT_NO_THROW(check_mapped_files());
  std::ofstream(folder / "kept", std::ios::app) << " and more";
  EXPECT_THROW(check_mapped_files(), Error);
}

TEST(FileGuard, OtherContentOfTheSameSizeIsAChange) {
  const fs::path path = file_with("first");
  const MappedFile file(path);
  std::ofstream(path) << "other";
  // File systems may count time in steps that are longer than this test.
  const timespec times[2] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  EXPECT_THROW(check_mapped_files(), Error);
}

TEST(FileGuard, AnotherSizeWithTheSameTimeIsAChange) {
  const fs::path path = file_with("first");
  const timespec times[2] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  const MappedFile file(path);
  EXPECT_NO_THROW(check_mapped_files());
  std::ofstream(path, std::ios::app) << " and more";
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  EXPECT_THROW(check_mapped_files(), Error);
}

TEST(FileGuard, ALostPageReadsAsZerosAndIsReported) {
  const fs::path path = testing::scratch_folder() / "file";
  std::ofstream(path) << std::string(100000, 'x');
  guard_mapped_files();
  {
    const MappedFile file(path);
    fs::resize_file(path, 5000);
    EXPECT_EQ(file.bytes()[10], std::byte{'x'});
    EXPECT_EQ(file.bytes()[90000], std::byte{0});
    EXPECT_THROW(check_mapped_files(), Error);
  }
  EXPECT_NO_THROW(check_mapped_files());
}

// More files than the guard holds at once are mapped, too, and closed files leave their places.
TEST(FileGuard, ReportsALostPageAfterManyFiles) {
  const fs::path path = testing::scratch_folder() / "file";
  std::ofstream(path) << std::string(100000, 'x');
  guard_mapped_files();
  {
    std::vector<std::unique_ptr<MappedFile>> files;
    for (int i = 0; i < 300; ++i) files.push_back(std::make_unique<MappedFile>(path));
    for (const auto& file : files) EXPECT_EQ(file->bytes()[99999], std::byte{'x'});
    EXPECT_NO_THROW(check_mapped_files());
  }
  const MappedFile file(path), other(path);
  fs::resize_file(path, 5000);
  EXPECT_EQ(file.bytes()[90000], std::byte{0});
  EXPECT_EQ(other.bytes()[99999], std::byte{0});
  std::ofstream(path) << std::string(100000, 'x');
  EXPECT_THROW(file.check(), Error);
  EXPECT_THROW(other.check(), Error);
}

}  // namespace
}  // namespace vitrail
