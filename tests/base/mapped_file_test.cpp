// SPDX-License-Identifier: Apache-2.0
// Contents of mapped files, released pages, and errors for files that cannot be mapped.
#include "vitrail/base/mapped_file_internal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/base/file_content_internal.h"
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

// The kernel does not map the first of these files, and before Linux 6.16 not the second one, which has several pages.
TEST(MappedFile, IsACopyWhereFilesCannotBeMapped) {
  for (const fs::path path : {"/sys/kernel/notes", "/sys/kernel/btf/vmlinux"}) {
    std::ifstream stream(path, std::ios::binary);
    const std::string contents{std::istreambuf_iterator<char>(stream), {}};
    if (contents.empty()) GTEST_SKIP() << path << " cannot be read";
    const MappedFile file(path);
    const std::byte* data = file.bytes().data();
    file.release(data, file.bytes().size());
    file.prefetch(data, file.bytes().size());
    EXPECT_TRUE(std::string(reinterpret_cast<const char*>(data), file.bytes().size()) == contents) << path;
  }
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

// Sets the time at which a file was modified: file systems may count time in steps that are longer than this test.
void set_seconds(const fs::path& path, time_t seconds) {
  const timespec time{.tv_sec = seconds, .tv_nsec = 0}, times[2] = {time, time};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

TEST(FileGuard, OtherContentOfTheSameSizeIsAChange) {
  const fs::path path = file_with("first");
  const MappedFile file(path);
  std::ofstream(path) << "other";
  set_seconds(path, 1);
  EXPECT_THROW(check_mapped_files(), Error);
}

TEST(FileGuard, ATouchedFileWhoseContentIsNotRememberedIsAChange) {
  const fs::path path = file_with("first");
  const MappedFileGroup group;
  const MappedFileGroup::Scope opening(group);
  const MappedFile file(path);
  set_seconds(path, 1);
  EXPECT_THROW(group.check(), Error) << "its content is not remembered";
  EXPECT_THROW(remember_contents(), Error);
  set_seconds(path, 2);
  EXPECT_THROW(group.check(), Error);
}

TEST(FileGuard, ContentDecidesOnceItIsRemembered) {
  const fs::path path = file_with("first");
  const MappedFileGroup group;
  const MappedFileGroup::Scope opening(group);
  const MappedFile file(path);
  remember_contents();
  set_seconds(path, 2);
  for (int i = 0; i < 2; ++i) EXPECT_NO_THROW(group.check());
  std::ofstream(path) << "other";
  set_seconds(path, 3);
  for (int i = 0; i < 2; ++i) EXPECT_THROW(group.check(), Error);
  std::ofstream(path) << "first";
  set_seconds(path, 4);
  EXPECT_NO_THROW(group.check()) << "its content is back";
  std::ofstream(path, std::ios::app) << " and more";
  EXPECT_THROW(group.check(), Error);
}

TEST(FileGuard, AnotherSizeWithTheSameTimeIsAChange) {
  const fs::path path = file_with("first");
  set_seconds(path, 1);
  const MappedFile file(path);
  EXPECT_NO_THROW(check_mapped_files());
  std::ofstream(path, std::ios::app) << " and more";
  set_seconds(path, 1);
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

// Memory between a lost page and the former place of a closed file above it is not the guard's.
TEST(FileGuard, ALostPageBelowAClosedFileChangesNothingElse) {
  const fs::path folder = testing::scratch_folder();
  for (const char* name : {"a", "b"}) std::ofstream(folder / name) << std::string(100000, 'x');
  guard_mapped_files();
  auto lower = std::make_unique<MappedFile>(folder / "a");
  constexpr size_t kBytes = 1 << 20;
  void* const between = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(between, MAP_FAILED);
  auto* const bytes = static_cast<char*>(between);
  std::fill_n(bytes, kBytes, 'y');
  auto upper = std::make_unique<MappedFile>(folder / "b");
  const bool rising = lower->bytes().data() < upper->bytes().data();
  if (!rising) std::swap(lower, upper);
  upper.reset();
  fs::resize_file(folder / (rising ? "a" : "b"), 5000);
  EXPECT_EQ(lower->bytes()[90000], std::byte{0});
  EXPECT_EQ(std::count(bytes, bytes + kBytes, 'y'), static_cast<std::ptrdiff_t>(kBytes));
  EXPECT_THROW(lower->check(), Error);
  ::munmap(between, kBytes);
}

TEST(MappedFile, KnowsItsPathAndSaysWhatItCannotOpen) {
  const fs::path folder = testing::scratch_folder(), path = file_with("text");
  EXPECT_EQ(MappedFile(path).path(), path);
  EXPECT_EQ(open_error(folder / "absent"),
            (folder / "absent").string() + ": cannot be opened: No such file or directory");
  EXPECT_ERROR(open_error(folder), folder.string(), "a folder");
  EXPECT_ERROR(open_error("/dev/null"), "/dev/null", "something else");
}

TEST(FileGuard, TheErrorNamesTheChangedFile) {
  const fs::path path = file_with("first");
  const MappedFile other(file_with("other")), file(path);
  EXPECT_NO_THROW(file.check());
  fs::resize_file(path, 3);
  const std::string want =
      path.string() + ": expected a file that stays the same while it is used, got one that has changed";
  EXPECT_EQ(testing::error_of([&] { file.check(); }), want);
  EXPECT_EQ(testing::error_of([] { check_mapped_files(); }), want);
  EXPECT_NO_THROW(other.check());
}

TEST(FileGuard, AGroupChecksTheFilesThatItsThreadOpenedForIt) {
  const MappedFileGroup first, second;
  const fs::path path = file_with("first"), inner_path = file_with("inner"), other_path = file_with("other");
  std::unique_ptr<MappedFile> file, inner, other;
  {
    const MappedFileGroup::Scope opening(first);
    {
      const MappedFileGroup::Scope nested(second);
      inner = std::make_unique<MappedFile>(inner_path);
    }
    file = std::make_unique<MappedFile>(path);
    std::thread([&] { other = std::make_unique<MappedFile>(other_path); }).join();
  }
  const MappedFile later(file_with("later"));
  fs::resize_file(later.path(), 3);
  fs::resize_file(other_path, 3);
  EXPECT_NO_THROW(first.check());
  fs::resize_file(inner_path, 3);
  EXPECT_NO_THROW(first.check());
  EXPECT_EQ(testing::error_of([&] { second.check(); }), testing::error_of([&] { inner->check(); }));
  inner.reset();
  EXPECT_NO_THROW(second.check()) << "it is closed";
  fs::resize_file(path, 3);
  EXPECT_EQ(testing::error_of([&] { first.check(); }), testing::error_of([&] { file->check(); }));
  EXPECT_NO_THROW(second.check());
}

// Whether each page of the range is in the process's page table; empty where the kernel does not tell.
std::vector<bool> present_pages(const std::byte* data, size_t pages) {
  std::vector<uint64_t> entries(pages);
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE)), bytes = pages * sizeof(uint64_t);
  const int map = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  const auto at = static_cast<off_t>(reinterpret_cast<uintptr_t>(data) / page * sizeof(uint64_t));
  const bool known = map >= 0 && ::pread(map, entries.data(), bytes, at) == static_cast<ssize_t>(bytes);
  if (map >= 0) ::close(map);
  std::vector<bool> present;
  for (const uint64_t entry : entries) present.push_back(entry >> 63 != 0);
  return known ? present : std::vector<bool>();
}

// The kernel may take back a page at any time, so that a page that must be there is looked for some times.
constexpr int kTries = 10;

TEST(MappedFile, ReleaseGivesBackThePagesThatAreCompletelyInItsRange) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  constexpr size_t kPages = 12;
  const MappedFile file(file_with(std::string(kPages * page, 'x')));
  const std::byte* data = file.bytes().data();
  const auto touch = [&] {
    unsigned sum = 0;
    for (size_t i = 0; i < kPages; ++i) sum += std::to_integer<unsigned>(data[i * page]);
    EXPECT_EQ(sum, kPages * 'x');
  };
  touch();
  if (present_pages(data, kPages).empty()) return;
  struct Case {
    size_t first, last, first_page, last_page;  // bytes of the range, and the pages that it releases
  };
  const Case cases[] = {{0, 2 * page, 0, 2},
                        {1, 2 * page, 1, 2},
                        {3 * page - 1, 5 * page + 1, 3, 5},
                        {3 * page, 5 * page - 1, 3, 4},
                        {7 * page + 10, 8 * page + 10, 0, 0},
                        {7 * page, 8 * page - 1, 0, 0},
                        {11 * page, 12 * page, 11, 12},
                        {4 * page, 4 * page, 0, 0}};
  for (const Case& c : cases) {
    std::vector<bool> want(kPages, true), present;
    for (size_t i = c.first_page; i < c.last_page; ++i) want[i] = false;
    for (int i = 0; i < kTries && present != want; ++i) {
      touch();
      file.release(data + c.first, c.last - c.first);
      present = present_pages(data, kPages);
    }
    EXPECT_EQ(present, want) << c.first << " to " << c.last;
  }
}

TEST(MappedFile, PrefetchMapsAllPagesOfItsRange) {
#ifdef MADV_POPULATE_READ
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  constexpr size_t kPages = 400, kFirst = 100, kEnd = 302;
  const MappedFile file(file_with(std::string(kPages * page, 'x')));
  const std::byte* data = file.bytes().data();
  if (present_pages(data, kPages).empty()) return;
  if (::madvise(const_cast<std::byte*>(data), page, MADV_POPULATE_READ) != 0) return;  // kernels before 5.14
  std::vector<bool> present;
  for (int i = 0; i < kTries && std::count(present.begin(), present.end(), true) < std::ptrdiff_t{kEnd - kFirst}; ++i) {
    file.prefetch(data + (kFirst + 1) * page - 1, (kEnd - kFirst - 2) * page + 2);
    present = present_pages(data + kFirst * page, kEnd - kFirst);
  }
  EXPECT_EQ(std::count(present.begin(), present.end(), true), std::ptrdiff_t{kEnd - kFirst});
#endif
}

}  // namespace
}  // namespace vitrail
