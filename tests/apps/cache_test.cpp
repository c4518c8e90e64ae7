// SPDX-License-Identifier: Apache-2.0
// `vitrail cache`: which models and revisions it takes.
#include "tests/apps/option_effects.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

// A model with the revisions main and old, of a file each, beside their references of 40 bytes.
class Cache : public ::testing::Test {
 protected:
  Cache() {
    for (const char* folder : {"refs", "blobs"}) fs::create_directories(model_ / folder);
    add("main", 'a', "content of main");
    add("old", 'b', "old");
  }
  void add(const std::string& ref, char letter, const std::string& content) {
    const std::string commit(40, letter);
    fs::create_directories(model_ / "snapshots" / commit);
    std::ofstream(model_ / "refs" / ref) << commit;
    std::ofstream(model_ / "blobs" / (std::string(39, letter) + "0")) << content;
    fs::create_symlink("../../blobs/" + std::string(39, letter) + "0", model_ / "snapshots" / commit / "config.json");
  }
  ProgramResult cache(Arguments arguments) const {
    arguments.insert(arguments.begin(), "cache");
    return run_program(arguments, "", {{"HF_HUB_CACHE", cache_.string()}});
  }

  fs::path cache_ = scratch_folder(), model_ = cache_ / "models--org--name";
};

TEST_F(Cache, ARevisionIsDeletedAloneAndAModelWithAll) {
  EXPECT_EQ(cache({"rm", "org/name@none"}).status, 1);
  EXPECT_EQ(cache({"rm", "org/other"}).status, 1);
  EXPECT_EQ(cache({"rm"}).status, 2);
  const ProgramResult removed = cache({"rm", "org/name@old"});
  EXPECT_EQ(removed.status, 0) << removed.err;
  EXPECT_TRUE(contains(removed.out, "43 B are free now")) << removed.out;
  const std::string listed = cache({"ls"}).out;
  EXPECT_TRUE(contains(listed, "main")) << listed;
  EXPECT_FALSE(contains(listed, "old")) << listed;
  EXPECT_TRUE(contains(cache({"rm", "org/name"}).out, "55 B are free now"));
  EXPECT_FALSE(contains(cache({"ls"}).out, "org/name"));
}

TEST_F(Cache, SizesHaveOneDecimalOfTheirUnit) {
  const fs::path blob = model_ / "blobs" / std::string(40, 'c');
  std::ofstream(blob) << "x";
  const auto size = [&](uintmax_t bytes) {
    fs::resize_file(blob, bytes);
    const std::string out = cache({"prune", "--dry-run"}).out;
    return out.substr(0, out.find(" would"));
  };
  EXPECT_EQ(size(999), "999 B");
  EXPECT_EQ(size(1000), "1.0 kB");
  EXPECT_EQ(size(1050), "1.1 kB");
  EXPECT_EQ(size(999'949), "999.9 kB");
  EXPECT_EQ(size(999'950), "1.0 MB");
  EXPECT_EQ(size(1'000'000), "1.0 MB");
  EXPECT_EQ(size(999'950'000), "1.0 GB");
}

}  // namespace
}  // namespace vitrail::testing
