// SPDX-License-Identifier: Apache-2.0
// A file is on disk before it gets its name, and its name before commit() returns: otherwise a power failure leaves an
// empty file under the name of a good one.  This program's own fsync(), linkat() and rename() take precedence over
// those of the C library and keep a record of the calls.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <initializer_list>
#include <mutex>
#include <string>
#include <vector>

#include "tests/support/paths.h"
#include "vitrail/base/atomic_file.h"

#ifdef __linux__

namespace {

std::mutex mutex;  // protects the calls: other tests of this program write files in several threads
std::vector<std::string> calls;
std::string watched;  // a file whose presence is noted when another one gets its name

int unlocked_names = 0;  // temporary names that another process could have deleted before their rename

// Whether a lock on the file is to be had.
bool can_be_locked(const char* path) {
  const int file = ::open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  const bool locked = ::flock(file, LOCK_EX | LOCK_NB) == 0;
  ::close(file);
  return locked;
}

void note(const std::string& call) {
  const std::lock_guard lock(mutex);
  calls.push_back(call);
}

void note_name() { note(::access(watched.c_str(), F_OK) == 0 ? "name beside an old file" : "name"); }

}  // namespace

extern "C" int fsync(int file) {
  struct stat status {};
  const bool folder = ::fstat(file, &status) == 0 && S_ISDIR(status.st_mode);
  note(folder ? "fsync folder" : "fsync " + std::to_string(status.st_size) + " bytes");
  return static_cast<int>(::syscall(SYS_fsync, file));
}

extern "C" int linkat(int from, const char* source, int to, const char* target, int flags) noexcept {
  note_name();
  return static_cast<int>(::syscall(SYS_linkat, from, source, to, target, flags));
}

extern "C" int rename(const char* source, const char* target) noexcept {
  note_name();
  if (can_be_locked(source)) ++unlocked_names;
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, source, AT_FDCWD, target, 0));
}

namespace vitrail {
namespace {

using Calls = std::vector<std::string>;

// The calls without repetitions: a new name may take a link and a rename.
Calls calls_of_commit(std::initializer_list<AtomicFile*> files) {
  calls.clear();
  AtomicFile::commit_together(files);
  Calls result;
  for (const std::string& call : calls) {
    if (result.empty() || result.back() != call) result.push_back(call);
  }
  return result;
}

TEST(FileSync, AFileIsOnDiskBeforeItHasItsName) {
  const auto path = testing::scratch_folder() / "file";
  watched = path.parent_path() / "absent";
  for (const std::string content : {"new", "replaced"}) {
    AtomicFile file(path);
    file.write(content);
    const std::string sync = "fsync " + std::to_string(content.size()) + " bytes";
    EXPECT_EQ(calls_of_commit({&file}), (Calls{sync, "name", "fsync folder"}));
  }
}

// Until all have their new content, only the first has a name: a process that is killed leaves no mixture.
TEST(FileSync, FilesThatBelongTogetherAreOnDiskBeforeTheFirstName) {
  const auto folder = testing::scratch_folder();
  watched = folder / "b";
  for (int round = 0; round < 2; ++round) {  // new files, then old ones that are replaced
    AtomicFile a(folder / "a"), b(folder / "b");
    a.write("a");
    b.write("bb");
    EXPECT_EQ(calls_of_commit({&a, &b}),
              (Calls{"fsync 1 bytes", "fsync 2 bytes", "name", "fsync folder", "name", "fsync folder"}));
  }
}

// The folder that the process works in is synced, too.
TEST(FileSync, AFileWithoutAFolderInItsPathIsInTheCurrentOne) {
  const auto folder = testing::scratch_folder(), before = std::filesystem::current_path();
  watched = folder / "absent";
  std::filesystem::current_path(folder);
  {
    AtomicFile file("file");
    file.write("new");
    EXPECT_EQ(calls_of_commit({&file}), (Calls{"fsync 3 bytes", "name", "fsync folder"}));
  }
  std::filesystem::current_path(before);
  EXPECT_TRUE(std::filesystem::exists(folder / "file"));
}

// A temporary name without a lock is that of a killed process, which others delete.
TEST(FileSync, ATemporaryNameIsLocked) {
  const auto path = testing::scratch_folder() / "file";
  watched = path.parent_path() / "absent";
  unlocked_names = 0;
  for (const char* content : {"new", "replaced"}) {
    AtomicFile file(path);
    file.write(content);
    file.commit();
  }
  EXPECT_EQ(unlocked_names, 0);
}

TEST(FileSync, AStreamIsNotSynced) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  watched = testing::scratch_folder() / "absent";
  AtomicFile file("/dev/fd/" + std::to_string(ends[1]));
  file.write("text");
  EXPECT_EQ(calls_of_commit({&file}), Calls{});
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace vitrail

#endif
