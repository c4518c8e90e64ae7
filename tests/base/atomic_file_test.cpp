// SPDX-License-Identifier: Apache-2.0
// A failed or abandoned write leaves the old file and no temporary file.
#include "vitrail/base/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>

#include "tests/base/contents.h"
#include "tests/support/errors.h"
#include "tests/support/full_disk.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/base/random.h"

namespace vitrail {
namespace {
namespace fs = std::filesystem;

using testing::content_of;

void expect_only(const fs::path& path, const std::string& contents) {
  EXPECT_EQ(content_of(path), contents);
  EXPECT_EQ(std::distance(fs::directory_iterator(path.parent_path()), {}), 1) << "the folder has other files";
}

void replace(const fs::path& path, const std::string& contents) {
  AtomicFile file(path);
  file.write(contents);
  file.commit();
}

TEST(AtomicFile, CommitReplacesTheOldFile) {
  const fs::path path = testing::scratch_folder() / "file";
  replace(path, "old");
  expect_only(path, "old");
  replace(path, "new");
  expect_only(path, "new");
}

TEST(AtomicFile, WithoutCommitTheOldFileIsKept) {
  const fs::path path = testing::scratch_folder() / "file";
  replace(path, "old");
  {
    AtomicFile file(path);
    file.write("half of the ne");
    EXPECT_EQ(content_of(path), "old");
  }
  expect_only(path, "old");
}

TEST(AtomicFile, FullDiskThrowsAndKeepsTheOldFile) {
  const fs::path path = testing::scratch_folder() / "file";
  replace(path, "old");
  {
    const testing::FullDisk full(5000);
    EXPECT_THROW(replace(path, std::string(100000, 'x')), Error);  // fails while writing
    EXPECT_THROW(replace(path, std::string(6000, 'x')), Error);    // fails when the buffer is flushed
  }
  expect_only(path, "old");
}

TEST(AtomicFile, AfterAFailedWriteItIsNotCommitted) {
  const fs::path path = testing::scratch_folder() / "file";
  replace(path, "old");
  for (const size_t size : {size_t{3000}, size_t{100000}}) {  // in the buffer and beside it
    AtomicFile file(path);
    {
      const testing::FullDisk full(5000);
      EXPECT_THROW(for (int i = 0; i < 100; ++i) file.write(std::string(size, 'x')), Error);
    }
    EXPECT_THROW(file.write("more"), Error) << "there is room again";
    EXPECT_THROW(file.commit(), Error);
  }
  expect_only(path, "old");
}

TEST(AtomicFile, MissingParentAndFolderAreErrorsThatNameThePath) {
  const fs::path folder = testing::scratch_folder();
  for (const fs::path& path : {folder / "absent" / "file", folder}) {
    try {
      replace(path, "x");
      ADD_FAILURE() << path << " was written";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(path.string()), std::string::npos) << error.what();
    }
  }
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST(AtomicFile, SeekFillsGapsWithZeros) {
  const fs::path path = testing::scratch_folder() / "file";
  AtomicFile file(path);
  file.write("ab");
  file.seek(4);
  file.write("c");
  file.seek(0);
  file.write("A");
  file.commit();
  expect_only(path, std::string("Ab\0\0c", 5));
}

TEST(AtomicFile, SymbolicLinkIsKeptAndItsTargetReplaced) {
  const fs::path folder = testing::scratch_folder(), target = testing::scratch_folder() / "target";
  replace(target, "old");
  fs::create_symlink(target, folder / "link");
  replace(folder / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  expect_only(target, "new");
}

TEST(AtomicFile, DeviceOrPipeIsWrittenDirectly) {
  const fs::path pipe = testing::scratch_folder() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string received;
  std::thread reader([&] { received = content_of(pipe); });
  replace(pipe, "through the pipe");
  reader.join();
  EXPECT_EQ(received, "through the pipe");
  EXPECT_TRUE(fs::is_fifo(pipe));

  const fs::path link = testing::scratch_folder() / "null";
  fs::create_symlink("/dev/null", link);
  replace(link, "into nothing");
  EXPECT_TRUE(fs::is_character_file(link));
}

TEST(AtomicFile, KeepsThePermissionsOfTheReplacedFile) {
  const fs::path path = testing::scratch_folder() / "file";
  for (const mode_t mode : {0640u, 0600u, 0755u}) {
    replace(path, "old");
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    replace(path, "new");
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, mode);
  }
}

TEST(AtomicFile, ALinkToAMissingFileCreatesThatFile) {
  const fs::path folder = testing::scratch_folder(), target = testing::scratch_folder() / "target";
  fs::create_symlink(target, folder / "link");
  replace(folder / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  expect_only(target, "new");
  fs::create_symlink("loop", folder / "loop");
  EXPECT_THROW(replace(folder / "loop", "x"), Error);
}

TEST(AtomicFile, SeekWorksOnAPipe) {
  const fs::path pipe = testing::scratch_folder() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string received;
  std::thread reader([&] { received = content_of(pipe); });
  AtomicFile file(pipe);
  file.write("abc");
  file.seek(0);
  file.write("A");
  file.commit();
  reader.join();
  EXPECT_EQ(received, "Abc");
}

TEST(AtomicFile, FilesThatBelongTogetherAppearTogether) {
  const fs::path folder = testing::scratch_folder();
  replace(folder / "a", "old a");
  replace(folder / "b", "old b");
  {
    AtomicFile a(folder / "a"), b(folder / "b");
    a.write("new a");
    b.write("new b");
    const testing::FullDisk full(2);
    EXPECT_THROW(AtomicFile::commit_together({&a, &b}), Error);
  }
  EXPECT_EQ(content_of(folder / "a"), "old a");
  EXPECT_EQ(content_of(folder / "b"), "old b");
  AtomicFile a(folder / "a"), b(folder / "b");
  a.write("new a");
  b.write("new b");
  AtomicFile::commit_together({&a, &b});
  EXPECT_EQ(content_of(folder / "a"), "new a");
  EXPECT_EQ(content_of(folder / "b"), "new b");
}

// A failure leaves no old companion beside a new first file.
TEST(AtomicFile, OldCompanionsAreGoneBeforeTheFirstFileAppears) {
  const fs::path folder = testing::scratch_folder();
  for (const char* name : {"first", "companion"}) replace(folder / name, "old");
  AtomicFile first(folder / "first"), blocked(folder / "blocked"), companion(folder / "companion");
  for (AtomicFile* file : {&first, &blocked, &companion}) file->write("new");
  fs::create_directories(folder / "blocked" / "by a folder");
  EXPECT_THROW(AtomicFile::commit_together({&first, &blocked, &companion}), Error);
  EXPECT_EQ(content_of(folder / "first"), "new");
  EXPECT_FALSE(fs::exists(folder / "companion"));
}

// Small writes are buffered and large ones are not; their order and every gap must be those of the calls.
TEST(AtomicFile, HasWhatWasWrittenInTheOrderOfTheCalls) {
  const fs::path path = testing::scratch_folder() / "file";
  RandomStream random(1);
  for (int round = 0; round < 20; ++round) {
    AtomicFile file(path);
    std::string want;
    size_t at = 0;
    for (int call = 0; call < 30; ++call) {
      if (random.bits() % 4 == 0) file.seek(at = random.bits() % 200'000);
      constexpr size_t kSizes[] = {0, 1, 100, 30'000, 65'535, 65'536, 65'537, 150'000};
      const std::string part(kSizes[random.bits() % 8], static_cast<char>('a' + call % 26));
      file.write(part);
      if (part.empty()) continue;
      want.resize(std::max(want.size(), at + part.size()));
      want.replace(at, part.size(), part);
      at += part.size();
    }
    file.commit();
    ASSERT_TRUE(content_of(path) == want) << "round " << round;
  }
}

TEST(AtomicFile, AnUnwrittenFileIsEmpty) {
  const fs::path path = testing::scratch_folder() / "file";
  replace(path, "old");
  AtomicFile(path).commit();
  expect_only(path, "");
}

TEST(AtomicFile, ADescriptorOfTheProcessIsWritten) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  replace("/dev/fd/" + std::to_string(ends[1]), "through a descriptor");
  ::close(ends[1]);
  char text[64] = "";
  EXPECT_EQ(::read(ends[0], text, sizeof text - 1), 20);
  EXPECT_STREQ(text, "through a descriptor");
  ::close(ends[0]);
  EXPECT_THROW(AtomicFile("/dev/fd/987654"), Error);
  for (const char* none : {"/dev/fd/1x", "/proc/self/fd/1x", "/dev/fd/", "/dev/fd/-1"})
    EXPECT_THROW(AtomicFile{none}, Error) << none;
}

TEST(AtomicFile, TheErrorNamesThePathAndTheReason) {
  const fs::path folder = testing::scratch_folder();
  const auto error = [](const fs::path& path) { return testing::error_of([&] { AtomicFile{path}; }); };
  EXPECT_ERROR(error(folder), folder.string(), "a folder");
  EXPECT_EQ(error(folder / "absent" / "file"),
            (folder / "absent/file").string() + ": cannot be written: No such file or directory");
  std::ofstream(folder / "text") << "x";
  EXPECT_EQ(error(folder / "text" / "file"), (folder / "text/file").string() + ": cannot be written: Not a directory");
  fs::create_symlink("loop", folder / "loop");
  EXPECT_EQ(error(folder / "loop"),
            (folder / "loop").string() + ": cannot be written: Too many levels of symbolic links");
  EXPECT_EQ(error("/dev/fd/987654"), "/dev/fd/987654: cannot be written: Bad file descriptor");
  AtomicFile file(folder / "file");
  EXPECT_EQ(testing::error_of([&] { file.seek(UINT64_MAX); }),
            (folder / "file").string() + ": write failed: Invalid argument");
  EXPECT_EQ(content_of(folder / "text"), "x");
}

TEST(AtomicFile, AFullDiskIsNamedAsTheReason) {
  const fs::path path = testing::scratch_folder() / "file";
  for (const size_t size : {100000, 6000}) {
    const testing::FullDisk full(5000);
    EXPECT_EQ(testing::error_of([&] { replace(path, std::string(size, 'x')); }),
              path.string() + ": write failed: File too large");
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(AtomicFile, FollowsRelativeLinksAndChainsOfLinks) {
  const fs::path folder = testing::scratch_folder();
  fs::create_directories(folder / "one" / "two");
  fs::create_symlink("two/target", folder / "one" / "link0");
  for (int i = 1; i < 39; ++i)
    fs::create_symlink("link" + std::to_string(i - 1), folder / "one" / ("link" + std::to_string(i)));
  fs::create_symlink("../one/link38", folder / "one" / "last");
  replace(folder / "one" / "last", "text");
  EXPECT_EQ(content_of(folder / "one/two/target"), "text");
  EXPECT_TRUE(fs::is_symlink(folder / "one/last"));
  EXPECT_TRUE(fs::is_symlink(folder / "one/link0"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "one/two"), {}), 1);
}

TEST(AtomicFile, KeepsAllBitsOfThePermissions) {
  const fs::path path = testing::scratch_folder() / "file";
  for (const mode_t mode : {0200u, 04751u, 02640u, 01604u, 0777u}) {
    fs::remove(path);
    replace(path, "old");
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    replace(path, "new");
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, mode);
  }
}

TEST(AtomicFile, KeepsTheOwnerOfTheReplacedFile) {
  if (::geteuid() != 0) return;  // only root may change owners
  const fs::path path = testing::scratch_folder() / "file";
  for (const auto& [user, group] : {std::pair<uid_t, gid_t>{1234, 0}, {0, 2345}, {1234, 2345}}) {
    replace(path, "old");
    ASSERT_EQ(::chown(path.c_str(), user, group), 0);
    replace(path, "new");
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, user);
    EXPECT_EQ(status.st_gid, group);
    EXPECT_EQ(content_of(path), "new");
  }
}

TEST(AtomicFile, MuchContentGoesThroughAPipeInItsOrder) {
  const fs::path pipe = testing::scratch_folder() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string received, text;
  for (int i = 0; i < 30000; ++i) text += std::to_string(i) + " ";
  std::thread reader([&] { received = content_of(pipe); });
  replace(pipe, text);
  reader.join();
  EXPECT_TRUE(received == text) << received.size() << " of " << text.size();
}

TEST(AtomicFile, AStreamThatBelongsToFilesIsKept) {
  const fs::path folder = testing::scratch_folder();
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  replace(folder / "first", "old");
  std::string received;
  std::thread reader([&] { received = content_of(folder / "pipe"); });
  AtomicFile first(folder / "first"), pipe(folder / "pipe");
  first.write("new");
  pipe.write("companion");
  AtomicFile::commit_together({&first, &pipe});
  reader.join();
  EXPECT_EQ(received, "companion");
  EXPECT_EQ(content_of(folder / "first"), "new");
  EXPECT_TRUE(fs::is_fifo(folder / "pipe"));
}

// A descriptor of a file takes the bytes at its own position, whatever was sought before.
TEST(AtomicFile, ADescriptorOfAFileIsWrittenFromItsPosition) {
  const fs::path path = testing::scratch_folder() / "log";
  for (const char* folder : {"/dev/fd/", "/proc/self/fd/"}) {
    const int log = ::open(path.c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
    ASSERT_GE(log, 0);
    ASSERT_EQ(::write(log, "before;", 7), 7);
    {
      AtomicFile file(folder + std::to_string(log));
      file.write("xbc");
      file.seek(0);
      file.write("a");
      file.commit();
    }
    ASSERT_EQ(::write(log, ";after", 6), 6) << "the descriptor stays open";
    ::close(log);
    EXPECT_EQ(content_of(path), "before;abc;after") << folder;
  }
}

TEST(AtomicFile, StandardOutputAndErrorAreTheirDescriptors) {
  for (const auto& [path, number] : {std::pair("/dev/stdout", STDOUT_FILENO), {"/dev/stderr", STDERR_FILENO}}) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const int before = ::dup(number);
    ::dup2(ends[1], number);
    replace(path, "text");
    ::dup2(before, number);
    ::close(before);
    ::close(ends[1]);
    char text[16] = "";
    EXPECT_EQ(::read(ends[0], text, sizeof text - 1), 4) << path;
    EXPECT_STREQ(text, "text") << path;
    ::close(ends[0]);
  }
}

// Runs in another process as a user without privileges; its status is the number of the first check that fails.
int as_another_user(const std::function<int()>& checks) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(100);
    ::_exit(checks());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 101;
}

TEST(AtomicFile, AFileThatMayNotBeWrittenIsAnErrorAtOnce) {
  const fs::path folder = testing::scratch_folder(), path = folder / "file";
  ASSERT_EQ(::chmod(folder.c_str(), 0777), 0);  // the file could be replaced
  std::ofstream(path) << "old";
  ASSERT_EQ(::chmod(path.c_str(), 0444), 0);
  EXPECT_EQ(as_another_user([&] {
              try {
                const AtomicFile file(path);
              } catch (const Error& error) {
                return error.what() == path.string() + ": cannot be written: Permission denied" ? 0 : 2;
              }
              return 1;
            }),
            0);
  EXPECT_EQ(content_of(path), "old");
}

TEST(AtomicFile, AFileInAFolderWithoutWritePermissionIsOverwritten) {
  const fs::path folder = testing::scratch_folder(), path = folder / "file";
  std::ofstream(path) << "old and longer";
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  ASSERT_EQ(::chmod(folder.c_str(), 0555), 0);
  const int status = as_another_user([&] {
    try {
      AtomicFile file(path);
      file.write("new");
      if (content_of(path) != "old and longer") return 1;
      file.commit();
    } catch (const Error&) {
      return 2;
    }
    try {
      const AtomicFile other(folder / "other");
    } catch (const Error& error) {
      return error.what() == (folder / "other").string() + ": cannot be written: Permission denied" ? 0 : 4;
    }
    return 3;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(content_of(path), "new");
  ASSERT_EQ(::chmod(folder.c_str(), 0755), 0);
  expect_only(path, "new");
}

}  // namespace
}  // namespace vitrail
