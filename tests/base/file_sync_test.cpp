// SPDX-License-Identifier: Apache-2.0
// A file is on disk before it gets its name, and its name before commit() returns: otherwise a power failure leaves an
// empty file under the name of a good one.  This program's own fsync(), linkat() and rename() take precedence over
// those of the C library and keep a record of the calls.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/support/paths.h"
#include "vitrail/base/atomic_file.h"

#ifdef __linux__

namespace {

std::vector<std::string> calls;

}  // namespace

extern "C" int fsync(int file) {
  struct stat status {};
  const bool folder = ::fstat(file, &status) == 0 && S_ISDIR(status.st_mode);
  calls.push_back(folder ? "fsync folder" : "fsync " + std::to_string(status.st_size) + " bytes");
  return static_cast<int>(::syscall(SYS_fsync, file));
}

extern "C" int linkat(int from, const char* source, int to, const char* target, int flags) noexcept {
  calls.emplace_back("name");
  return static_cast<int>(::syscall(SYS_linkat, from, source, to, target, flags));
}

extern "C" int rename(const char* source, const char* target) noexcept {
  calls.emplace_back("name");
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, source, AT_FDCWD, target, 0));
}

namespace vitrail {
namespace {

using Calls = std::vector<std::string>;

// The calls without repetitions: a new name may take a link and a rename.
Calls calls_of_commit(const std::filesystem::path& path, const std::string& content) {
  AtomicFile file(path);
  file.write(content);
  calls.clear();
  file.commit();
  Calls result;
  for (const std::string& call : calls) {
    if (result.empty() || result.back() != call) result.push_back(call);
  }
  return result;
}

TEST(FileSync, AFileIsOnDiskBeforeItHasItsName) {
  const auto path = testing::scratch_folder() / "file";
  EXPECT_EQ(calls_of_commit(path, "new"), (Calls{"fsync 3 bytes", "name", "fsync folder"}));
  EXPECT_EQ(calls_of_commit(path, "replaced"), (Calls{"fsync 8 bytes", "name", "fsync folder"}));
}

TEST(FileSync, FilesThatBelongTogetherAreOnDiskBeforeTheFirstName) {
  const auto folder = testing::scratch_folder();
  AtomicFile a(folder / "a"), b(folder / "b");
  a.write("a");
  b.write("bb");
  calls.clear();
  AtomicFile::commit_together({&a, &b});
  EXPECT_EQ(calls, (Calls{"fsync 1 bytes", "fsync 2 bytes", "name", "fsync folder", "name", "fsync folder"}));
}

}  // namespace
}  // namespace vitrail

#endif
