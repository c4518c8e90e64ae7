// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/temporary_file_internal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "tests/base/contents.h"
#include "tests/support/paths.h"

namespace vitrail {
namespace {
namespace fs = std::filesystem;

std::ptrdiff_t files_in(const fs::path& folder) { return std::distance(fs::directory_iterator(folder), {}); }

class TemporaryFileTest : public ::testing::TestWithParam<TemporaryFile::Kind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, TemporaryFileTest,
                         ::testing::Values(TemporaryFile::Kind::unnamed_if_possible, TemporaryFile::Kind::named));

TEST_P(TemporaryFileTest, BecomesANewOrReplacedFile) {
  const fs::path folder = testing::scratch_folder(), target = folder / std::string(255, 'x');
  for (const std::string text : {"first", "second"}) {
    TemporaryFile file(folder, GetParam());
    ASSERT_EQ(::write(file.descriptor(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ASSERT_FALSE(file.link_to(target));
    EXPECT_EQ(testing::content_of(target), text);
    EXPECT_EQ(files_in(folder), 1);
  }
  EXPECT_EQ(files_in(folder), 1);
}

TEST_P(TemporaryFileTest, VanishesWithoutAName) {
  const fs::path folder = testing::scratch_folder();
  { const TemporaryFile file(folder, GetParam()); }
  EXPECT_EQ(files_in(folder), 0);
}

TEST_P(TemporaryFileTest, HasThePermissionsThatTheUmaskLeaves) {
  const fs::path folder = testing::scratch_folder();
  const mode_t before = ::umask(027);
  TemporaryFile file(folder, GetParam());
  ::umask(before);
  ASSERT_FALSE(file.link_to(folder / "x"));
  struct stat status {};
  ASSERT_EQ(::stat((folder / "x").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST_P(TemporaryFileTest, AMissingFolderIsAnError) {
  EXPECT_THROW(TemporaryFile(testing::scratch_folder() / "absent", GetParam()), std::system_error);
}

// What a signal handler does.
TEST(TemporaryFile, NamedFilesCanBeRemovedAtOnce) {
  const fs::path folder = testing::scratch_folder();
  const TemporaryFile one(folder, TemporaryFile::Kind::named), two(folder, TemporaryFile::Kind::named);
  EXPECT_EQ(files_in(folder), 2);
  remove_temporary_files();
  EXPECT_EQ(files_in(folder), 0);
}

// The list of named files is short: closed files leave it.
TEST(TemporaryFile, NamedFilesAfterManyOthersCanBeRemovedAtOnce) {
  const fs::path folder = testing::scratch_folder();
  for (int i = 0; i < 100; ++i) TemporaryFile(folder, TemporaryFile::Kind::named);
  EXPECT_EQ(files_in(folder), 0);
  const TemporaryFile last(folder, TemporaryFile::Kind::named);
  EXPECT_EQ(files_in(folder), 1);
  remove_temporary_files();
  EXPECT_EQ(files_in(folder), 0);
}

TEST(TemporaryFile, FilesOfKilledProcessesAreRemovedAndNoOthers) {
  const fs::path folder = testing::scratch_folder();
  const pid_t child = ::fork();
  if (child == 0) {
    auto* const file = new TemporaryFile(folder, TemporaryFile::Kind::named);
    static_cast<void>(file);
    ::_exit(0);  // as if killed: no destructor runs
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  ASSERT_EQ(files_in(folder), 1);
  for (const char* name :
       {".vitrail-notes.tmp", ".vitrail-0123456789abcdeg.tmp", "x.tmp", "vitrail-0123456789abcdef.tmp"})
    std::ofstream(folder / name) << "someone else's";
  const TemporaryFile in_use(folder, TemporaryFile::Kind::named);
  EXPECT_EQ(files_in(folder), 5) << "the abandoned file is gone";
  const TemporaryFile other(folder, TemporaryFile::Kind::named);
  EXPECT_EQ(files_in(folder), 6) << "the file in use is kept";
}

// A process that is killed while it replaces a file leaves the name between the link and the rename.
TEST_P(TemporaryFileTest, ReplacingAFileRemovesThoseOfKilledProcesses) {
  const fs::path folder = testing::scratch_folder(), abandoned = folder / ".vitrail-0123456789abcdef.tmp";
  for (const fs::path& file : {folder / "x", abandoned}) std::ofstream(file) << "old";
  const TemporaryFile in_use(folder, TemporaryFile::Kind::named);
  std::ofstream(abandoned) << "killed meanwhile";
  TemporaryFile file(folder, GetParam());
  ASSERT_FALSE(file.link_to(folder / "x"));
  EXPECT_FALSE(fs::exists(abandoned));
  EXPECT_EQ(files_in(folder), 2) << "the file, and the temporary file in use";
}

TEST(TemporaryFile, HasANameOfAFixedForm) {
  EXPECT_TRUE(is_temporary_name(".vitrail-0123456789abcdef.tmp"));
  EXPECT_TRUE(is_temporary_name(".vitrail-ffffffffffffffff.tmp"));
  for (const char* name :
       {"", ".vitrail-.tmp", ".vitrail-0123456789abcde.tmp", ".vitrail-0123456789abcdef0.tmp",
        ".vitrail-0123456789ABCDEF.tmp", ".vitrail-g123456789abcdef.tmp", ".vitrail-0123456789abcdeg.tmp",
        ".vitrail_0123456789abcdef.tmp", "xvitrail-0123456789abcdef.tmp", ".vitrail-0123456789abcdef.tmq",
        ".vitrail-0123456789abcdef_tmp"})
    EXPECT_FALSE(is_temporary_name(name)) << name;
  const fs::path folder = testing::scratch_folder();
  const TemporaryFile one(folder, TemporaryFile::Kind::named), two(folder, TemporaryFile::Kind::named);
  EXPECT_EQ(files_in(folder), 2);
  for (const auto& entry : fs::directory_iterator(folder))
    EXPECT_TRUE(is_temporary_name(entry.path().filename().string())) << entry.path();
}

TEST(TemporaryFile, WithoutANameIsNotInItsFolder) {
  const fs::path folder = testing::scratch_folder();
  const TemporaryFile file(folder);
  const int unnamed = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  EXPECT_EQ(files_in(folder), unnamed < 0 ? 1 : 0) << "where the system has files without names";
  if (unnamed >= 0) ::close(unnamed);
}

TEST_P(TemporaryFileTest, TheReasonOfAFailureIsThatOfTheSystem) {
  const fs::path folder = testing::scratch_folder();
  std::ofstream(folder / "file") << "x";
  const auto reason = [&](const fs::path& in) {
    try {
      TemporaryFile(in, GetParam());
    } catch (const std::system_error& error) {
      return error.code().value();
    }
    return 0;
  };
  EXPECT_EQ(reason(folder / "absent"), ENOENT);
  EXPECT_EQ(reason(folder / "file"), ENOTDIR);
}

TEST_P(TemporaryFileTest, CannotReplaceAFolder) {
  const fs::path folder = testing::scratch_folder();
  fs::create_directories(folder / "target" / "inside");
  {
    TemporaryFile file(folder, GetParam());
    EXPECT_TRUE(file.link_to(folder / "target"));
    EXPECT_TRUE(file.link_to(folder / "absent" / "file"));
  }
  EXPECT_EQ(files_in(folder), 1) << "the temporary file is gone";
}

TEST_P(TemporaryFileTest, ThatHasBecomeAnotherFileIsNotRemoved) {
  const fs::path folder = testing::scratch_folder();
  std::ofstream(folder / "replaced") << "old";
  TemporaryFile one(folder, GetParam()), two(folder, GetParam());
  ASSERT_EQ(::write(one.descriptor(), "1", 1), 1);
  ASSERT_FALSE(one.link_to(folder / "replaced"));
  ASSERT_FALSE(two.link_to(folder / "new"));
  remove_temporary_files();
  EXPECT_EQ(testing::content_of(folder / "replaced"), "1");
  EXPECT_EQ(files_in(folder), 2);
}

TEST_P(TemporaryFileTest, CanBeReadAndIsNotInherited) {
  const fs::path folder = testing::scratch_folder();
  const TemporaryFile file(folder, GetParam());
  ASSERT_EQ(::write(file.descriptor(), "text", 4), 4);
  ASSERT_EQ(::lseek(file.descriptor(), 1, SEEK_SET), 1);
  char text[8] = "";
  EXPECT_EQ(::read(file.descriptor(), text, sizeof text), 3);
  EXPECT_STREQ(text, "ext");
  EXPECT_NE(::fcntl(file.descriptor(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(TemporaryFile, TheListOfNamedFilesHas32Places) {
  const fs::path folder = testing::scratch_folder();
  std::vector<std::unique_ptr<TemporaryFile>> files;
  for (int i = 0; i < 33; ++i) files.push_back(std::make_unique<TemporaryFile>(folder, TemporaryFile::Kind::named));
  remove_temporary_files();
  EXPECT_EQ(files_in(folder), 1);
  files.clear();
  EXPECT_EQ(files_in(folder), 0);
}

}  // namespace
}  // namespace vitrail
