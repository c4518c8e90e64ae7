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

// A row for each revision, with its own size, and one for what an interrupted download left.
TEST_F(Cache, TheListHasARowForEachRevisionAndInterruptedDownload) {
  std::ofstream(model_ / "refs" / "v1") << std::string(40, 'a');
  std::ofstream(model_ / "blobs" / (std::string(40, 'd') + ".vitrail-partial")) << std::string(1234, 'x');
  const std::string name = "org/name" + std::string(36, ' ');
  const std::vector<std::string> lines = lines_of(cache({"ls"}).out);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0], "model" + std::string(39, ' ') + "       size  files  commit       revisions");
  EXPECT_EQ(lines[1], name + "       15 B      1  aaaaaaaaaaaa main, v1");
  EXPECT_EQ(lines[2], name + "        3 B      1  bbbbbbbbbbbb old");
  EXPECT_EQ(lines[3], name + "     1.2 kB         interrupted download");
  EXPECT_EQ(lines_of(cache({"ls", "org/name"}).out), lines);
}

// The names of the blobs here are not their digests, but that of "old" can be made so.
TEST_F(Cache, VerifyCountsModelsBytesAndDamagedFiles) {
  const ProgramResult both = cache({"verify"});
  EXPECT_EQ(both.status, 1);
  EXPECT_EQ(both.out, "1 models, 18 B: 2 damaged files\n");
  EXPECT_EQ(lines_of(both.err).size(), 2U) << both.err;
  // printf old | git hash-object --stdin
  const std::string digest = "489ce0f857e7634a0eb9f328265a3e91fad49f61";
  const fs::path other = cache_ / "models--org--other", commit(std::string(40, 'c'));
  for (const fs::path& folder : {fs::path("refs"), fs::path("blobs"), "snapshots" / commit})
    fs::create_directories(other / folder);
  std::ofstream(other / "refs" / "main") << commit.string();
  std::ofstream(other / "blobs" / digest) << "old";
  fs::create_symlink("../../blobs/" + digest, other / "snapshots" / commit / "config.json");
  const ProgramResult whole = cache({"verify", "org/other"});
  EXPECT_EQ(whole.status, 0) << whole.err;
  EXPECT_EQ(whole.out, "1 models, 3 B: 0 damaged files\n");
  EXPECT_EQ(cache({"verify"}).out, "2 models, 21 B: 2 damaged files\n");
  const ProgramResult removed = cache({"verify", "--remove"});
  EXPECT_EQ(removed.status, 1);
  EXPECT_EQ(removed.out, "2 models, 21 B: 2 damaged files, deleted: vitrail pull gets them again\n");
  EXPECT_TRUE(fs::exists(other / "blobs" / digest));
  EXPECT_FALSE(fs::exists(model_ / "blobs" / (std::string(39, 'a') + "0")));
  EXPECT_EQ(cache({"verify", "org/other", "--remove"}).out, "1 models, 3 B: 0 damaged files\n");
}

TEST_F(Cache, OptionsBelongToTheirActions) {
  for (const auto& [action, option] : {std::pair{"ls", "--remove"},
                                       {"rm", "--remove"},
                                       {"prune", "--remove"},
                                       {"ls", "--dry-run"},
                                       {"verify", "--dry-run"}}) {
    EXPECT_EQ(cache({action, "org/name", option}).status, 2) << action << ' ' << option;
  }
  EXPECT_EQ(cache({"rm", "org/name", "--dry-run"}).status, 0);
  EXPECT_EQ(cache({"prune", "--dry-run"}).status, 0);
  EXPECT_EQ(lines_of(cache({"ls"}).out).size(), 3U) << "nothing was deleted";
}

}  // namespace
}  // namespace vitrail::testing
