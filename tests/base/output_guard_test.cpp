// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/output_guard_internal.h"

#include <gtest/gtest.h>

#include "tests/base/contents.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/atomic_file.h"
#include "vitrail/base/mapped_file_internal.h"
#include "vitrail/base/read_file.h"

namespace vitrail {
namespace {

namespace fs = std::filesystem;

using testing::contains;
using testing::content_of;
using testing::error_of;

void write(const fs::path& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

TEST(OutputGuard, AFileThatIsReadIsNotReplaced) {
  const fs::path folder = testing::scratch_folder();
  for (const bool maps : {false, true}) {
    const fs::path file = folder / (maps ? "mapped" : "read"), link = file.string() + ".link";
    write(file, "input");
    fs::create_symlink(file, link);
    guard_outputs({link.string()});
    const std::string message = error_of([&] {
      if (maps) {
        const MappedFile mapped(file);
      } else {
        read_file(file, 100);
      }
    });
    EXPECT_TRUE(contains(message, file.string() + ": expected another input than the file that the results replace"));
    for (const fs::path& output : {file, link}) {
      EXPECT_TRUE(contains(error_of([&] { write(output, "results"); }), "expected another file than an input"));
    }
    EXPECT_EQ(content_of(file), "input");
  }
}

TEST(OutputGuard, AnOutputThatIsNoInputIsReplacedAndMayBeReadThen) {
  const fs::path folder = testing::scratch_folder(), output = folder / "output", other = folder / "other";
  write(output, "old");
  write(other, "other");
  guard_outputs({output.string(), (folder / "absent").string(), "/dev/null"});
  EXPECT_EQ(read_text_file(other), "other");
  write(output, "new");
  EXPECT_EQ(read_text_file(output), "new");
  write(output, "newer");
  EXPECT_EQ(read_text_file(output), "newer");
}

// A hard link stands for another file that gets the inode of the replaced one.
TEST(OutputGuard, AReplacedInodeIsGuardedNoLonger) {
  const fs::path folder = testing::scratch_folder(), output = folder / "output", link = folder / "link";
  write(output, "old");
  fs::create_hard_link(output, link);
  guard_outputs({output.string()});
  write(output, "new");
  EXPECT_EQ(read_text_file(link), "old");
}

}  // namespace
}  // namespace vitrail
