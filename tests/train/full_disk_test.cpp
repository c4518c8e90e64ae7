// SPDX-License-Identifier: Apache-2.0
// The program with a limited size of files, as on a full disk.
#include "tests/support/program.h"
#include "tests/train/training_fixture.h"
#include "vitrail/train/run/checkpoint.h"

namespace vitrail::train {
namespace {

TEST(FullDisk, IsAnErrorOfTheProgramThatNamesTheFile) {
  const fs::path folder = testing::scratch_folder(), recipe = folder / "recipe.json", run = folder / "run";
  write_file(recipe, tiny_recipe(make_images()));
  const std::string vitrail = testing::program().string();
  // The limit is in blocks of 512 bytes.  A checkpoint has about 40 kB.
  const testing::ProgramResult full = testing::run_program(
      {"-c", "ulimit -f 32; exec \"$0\" \"$@\"", vitrail, "train", recipe.string(), "-o", run.string()}, "", {},
      "/bin/sh");
  EXPECT_EQ(full.status, 1) << full.err;
  EXPECT_TRUE(contains(full.err, "last.safetensors")) << full.err;
  EXPECT_TRUE(contains(full.err, "File too large")) << full.err;
  // With space again, the run starts.
  const testing::ProgramResult resumed =
      testing::run_program({"train", recipe.string(), "-o", run.string(), "--resume"});
  EXPECT_EQ(resumed.status, 0) << resumed.err;
}

}  // namespace
}  // namespace vitrail::train
