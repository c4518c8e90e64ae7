// SPDX-License-Identifier: Apache-2.0
// The memory limit of a container: an image that does not fit is that image's error, and other images have their rows.
#include <unistd.h>

#include <fstream>
#include <utility>

#include "tests/apps/shell.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"

namespace vitrail::app {
namespace {

namespace fs = std::filesystem;

// A cgroup of 300 MiB, of the first or second version; none without permission.
class LimitedMemory : public ::testing::Test {
 protected:
  LimitedMemory() {
    const std::string name = "vitrail-test-" + std::to_string(::getpid());
    const std::pair<const char*, const char*> versions[] = {{"memory/", "memory.limit_in_bytes"}, {"", "memory.max"}};
    for (const auto& [hierarchy, file] : versions) {
      const fs::path group = "/sys/fs/cgroup/" + (hierarchy + name);
      std::error_code refused;
      if (!fs::create_directory(group, refused)) continue;
      group_ = group;
      if (fs::exists(group / file) && std::ofstream(group / file) << (300 << 20) << std::flush) return;
      leave();
    }
  }
  ~LimitedMemory() override { leave(); }

  void leave() {
    if (!group_.empty()) ::rmdir(std::exchange(group_, {}).c_str());
  }

  fs::path group_;
};

TEST_F(LimitedMemory, AnImageThatDoesNotFitIsItsError) {
  if (group_.empty()) GTEST_SKIP() << "no cgroup can be made here";
  const fs::path folder = testing::scratch_folder();
  std::ofstream(folder / "large.pgm") << "P5 12000 9000 255\n" << std::string(size_t{12'000} * 9'000, 'x');
  fs::copy_file(testing::source("examples/photographs/chelsea.png"), folder / "small.png");
  const std::string inside = "echo $$ > " + (group_ / "cgroup.procs").string() + "; exec $V classify -m $M ";
  EXPECT_EQ(testing::shell(inside + folder.string() + " --format csv --top 1 > " + (folder / "out").string() + " 2> " +
                           (folder / "err").string()),
            1);
  EXPECT_TRUE(testing::contains(testing::content_of(folder / "out"), "small.png"));
  EXPECT_TRUE(testing::contains(testing::content_of(folder / "err"), "large.pgm: expected pixels that need at most"));
}

}  // namespace
}  // namespace vitrail::app
