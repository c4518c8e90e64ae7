// SPDX-License-Identifier: Apache-2.0
// Two processes that replace the same files together never mix them.
#include "vitrail/base/folder_lock_internal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>

#include "tests/base/contents.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/atomic_file.h"

namespace vitrail {
namespace {
namespace fs = std::filesystem;

using std::chrono::milliseconds;
using testing::content_of;

constexpr milliseconds kMoment(100);

// Whether another process would wait for the lock.
bool is_locked(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool locked = ::flock(descriptor, LOCK_EX | LOCK_NB) != 0;
  ::close(descriptor);
  return locked;
}

// A folder with a pair of files.
fs::path folder_of_pair() {
  const fs::path folder = testing::scratch_folder();
  for (const char* name : {"array", "names"}) std::ofstream(folder / name) << "old";
  return folder;
}

void replace_pair(const fs::path& folder, const std::string& content) {
  AtomicFile array(folder / "array"), names(folder / "names");
  for (AtomicFile* file : {&array, &names}) file->write(content);
  AtomicFile::commit_together({&array, &names});
}

TEST(FolderLock, IsHeldDuringItsLifetime) {
  const fs::path folder = testing::scratch_folder();
  {
    const FolderLock lock(folder);
    EXPECT_TRUE(is_locked(folder));
  }
  EXPECT_FALSE(is_locked(folder));
}

TEST(FolderLock, OthersThatKeepItAreReportedAndIgnored) {
  const fs::path folder = testing::scratch_folder();
  const testing::Warnings warnings;
  const FolderLock lock(folder);
  EXPECT_TRUE(warnings.messages.empty());
  const FolderLock impatient(folder, milliseconds(10));
  EXPECT_TRUE(warnings.any(folder.string() + ": another process keeps this folder locked"));
}

TEST(FolderLock, AMissingFolderIsAccepted) {
  const testing::Warnings warnings;
  const FolderLock lock(testing::scratch_folder() / "absent");
  EXPECT_TRUE(warnings.messages.empty());
}

TEST(FolderLock, FilesThatBelongTogetherWaitForIt) {
  const fs::path folder = folder_of_pair();
  std::atomic<bool> committed = false;
  std::thread other;
  {
    const FolderLock lock(folder);
    other = std::thread([&] {
      replace_pair(folder, "new");
      committed = true;
    });
    std::this_thread::sleep_for(kMoment);
    EXPECT_FALSE(committed);
    for (const char* name : {"array", "names"}) EXPECT_EQ(content_of(folder / name), "old") << name;
  }
  other.join();
  for (const char* name : {"array", "names"}) EXPECT_EQ(content_of(folder / name), "new") << name;
}

// A file alone is replaced at once, whoever locks the folder.
TEST(FolderLock, AFileAloneDoesNotWaitForIt) {
  const fs::path folder = folder_of_pair();
  const testing::Warnings warnings;
  const FolderLock lock(folder);
  AtomicFile file(folder / "array");
  file.write("new");
  file.commit();
  EXPECT_EQ(content_of(folder / "array"), "new");
  EXPECT_TRUE(warnings.messages.empty());
}

// The last file is a pipe whose reader waits: all others are in their places.
TEST(FolderLock, IsHeldUntilTheLastFileIsInItsPlace) {
  const fs::path folder = folder_of_pair(), pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  ASSERT_EQ(::fcntl(reader, F_SETFL, 0), 0);
  const std::string text(1'000'000, 'x');  // more than a pipe holds
  std::thread writer([&] {
    AtomicFile array(folder / "array"), names(folder / "names"), last(pipe);
    for (AtomicFile* file : {&array, &names}) file->write("new");
    last.write(text);
    AtomicFile::commit_together({&array, &names, &last});
  });
  while (content_of(folder / "names") != "new") std::this_thread::sleep_for(milliseconds(1));
  EXPECT_TRUE(is_locked(folder));
  std::string received, block(65536, ' ');
  for (ssize_t size = 0; (size = ::read(reader, block.data(), block.size())) > 0;)
    received.append(block, 0, static_cast<size_t>(size));
  writer.join();
  ::close(reader);
  EXPECT_EQ(received.size(), text.size());
  EXPECT_FALSE(is_locked(folder));
}

TEST(FolderLock, PairsOfTwoWritersAreNeverMixed) {
  const fs::path folder = folder_of_pair();
  for (int round = 0; round < 20; ++round) {
    std::thread a([&] { replace_pair(folder, "a"); }), b([&] { replace_pair(folder, "b"); });
    a.join();
    b.join();
    EXPECT_EQ(content_of(folder / "array"), content_of(folder / "names")) << "round " << round;
  }
}

}  // namespace
}  // namespace vitrail
