// SPDX-License-Identifier: Apache-2.0
// Listing, verifying and tidying the cache.
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "tests/hub/hub_server.h"
#include "tests/support/messages.h"
#include "vitrail/hub/blob_digest_internal.h"
#include "vitrail/hub/cache.h"
#include "vitrail/hub/download_lock_internal.h"
#include "vitrail/hub/file_list_internal.h"
#include "vitrail/hub/hub.h"
#include "vitrail/hub/snapshot_internal.h"

namespace vitrail::hub {
namespace {

namespace fs = std::filesystem;
using testing::contains;
using testing::error_of;
using Names = std::set<std::string>;

const std::string kOld(40, 'a'), kNew(40, 'b');

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

HubFile file_of(const std::string& content) {
  const auto size = static_cast<int64_t>(content.size());
  const auto digest = digest_of_blob(std::string(40, 'x'), size);
  digest->update(content.data(), content.size());
  return {.size = size, .blob_id = digest->hex(), .lfs_sha256 = {}, .xet_hash = {}};
}

// A model of two revisions that share their weights: "v1" is the old one, "main" the new one.
class CachedModels : public ::testing::Test {
 protected:
  CachedModels() {
    add(kOld, "config.json", "{}");
    add(kOld, "model.safetensors", "weights");
    add(kNew, "config.json", "{\"a\": 1}");
    add(kNew, "model.safetensors", "weights");
    write(layout_.ref("main"), kNew);
    write(layout_.ref("v1"), kOld + "\n");
  }
  void add(const std::string& commit, const std::string& path, const std::string& content) {
    const HubFile file = file_of(content);
    if (!fs::exists(layout_.blobs() / file.etag())) write(layout_.blobs() / file.etag(), content);
    add_to_snapshot(layout_, commit, path, file, true);
    trees_[commit][path] = file;
  }
  static CachedModel only_model() {
    const std::vector<CachedModel> models = cached_models();
    EXPECT_EQ(models.size(), 1u);
    return models.at(0);
  }
  Names blobs() const {
    Names names;
    for (const auto& entry : fs::directory_iterator(layout_.blobs())) names.insert(entry.path().filename());
    return names;
  }
  static std::string name_of(const std::string& content) { return file_of(content).etag(); }

  const fs::path cache_ = testing::scratch_folder();
  const Environment environment_{{{"HF_HUB_CACHE", cache_.string()}, {"HF_TOKEN", std::nullopt}}};
  const Layout layout_{cache_, "org/name"};
  std::map<std::string, FileList> trees_;
};

TEST_F(CachedModels, AreListedWithTheirRevisionsAndEachByteOnce) {
  write(cache_ / "datasets--org--data/blobs/x", "data");
  write(cache_ / "version.txt", "1");
  write(layout_.blobs() / "x.incomplete", "part");
  write(layout_.blobs() / "unused", "12345");
  const CachedModel model = only_model();
  EXPECT_EQ(model.repository, "org/name");
  EXPECT_EQ(model.bytes, 2 + 7 + 8 + 5) << "shared weights count once";
  EXPECT_EQ(model.partial_bytes, 4);
  ASSERT_EQ(model.revisions.size(), 2u);
  EXPECT_EQ(model.revisions[0].commit, kOld);
  EXPECT_EQ(model.revisions[0].refs, std::vector<std::string>{"v1"});
  EXPECT_EQ(model.revisions[0].files, 2);
  EXPECT_EQ(model.revisions[0].bytes, 9);
  EXPECT_EQ(model.revisions[1].refs, std::vector<std::string>{"main"});
  EXPECT_EQ(model.revisions[1].bytes, 15);
}

TEST_F(CachedModels, AnAbsentCacheIsEmpty) {
  const Environment absent({{"HF_HUB_CACHE", (cache_ / "absent").string()}});
  EXPECT_TRUE(cached_models().empty());
  EXPECT_EQ(cache_folder(), cache_ / "absent");
}

TEST_F(CachedModels, RemovingARevisionKeepsWhatAnotherUses) {
  EXPECT_EQ(remove(only_model(), "v1", true), 2 + 41) << "a blob and the reference; a link takes no space";
  EXPECT_EQ(blobs().size(), 3u) << "a dry run";
  EXPECT_EQ(remove(only_model(), "v1", false), 2 + 41);
  EXPECT_EQ(blobs(), (Names{name_of("{\"a\": 1}"), name_of("weights")}));
  EXPECT_TRUE(fs::exists(layout_.snapshot(kNew) / "model.safetensors"));
}

TEST_F(CachedModels, ARevisionIsNamedByItsCommitToo) {
  write(layout_.blobs() / "x.incomplete", "part");
  remove(only_model(), kNew, false);
  EXPECT_EQ(blobs(), (Names{name_of("{}"), name_of("weights"), "x.incomplete"}));
  EXPECT_FALSE(fs::exists(layout_.snapshot(kNew)));
  EXPECT_FALSE(fs::exists(layout_.ref("main")));
  EXPECT_TRUE(fs::exists(layout_.ref("v1")));
  EXPECT_TRUE(
      contains(error_of([&] { remove(only_model(), "main", false); }), "a revision in the cache (v1), got main"));
}

TEST_F(CachedModels, RemovingAModelDeletesItsFolderAndLocks) {
  write(layout_.lock("x"), "");
  remove(only_model(), "", false);
  EXPECT_FALSE(fs::exists(layout_.folder()));
  EXPECT_FALSE(fs::exists(layout_.lock("x").parent_path()));
  EXPECT_TRUE(cached_models().empty());
}

TEST_F(CachedModels, PruningDeletesWhatNoReferenceNeeds) {
  fs::remove(layout_.ref("v1"));
  write(layout_.tree(kOld), "{}");
  write(layout_.blobs() / "unused", "12345");
  write(layout_.blobs() / "x.vitrail-partial", "part");
  write(layout_.blobs() / "x.vitrail-etag", "t");
  EXPECT_EQ(prune(only_model(), true), 2 + 2 + 5 + 4 + 1);
  EXPECT_EQ(blobs().size(), 6u) << "a dry run";
  EXPECT_EQ(prune(only_model(), false), 2 + 2 + 5 + 4 + 1);
  EXPECT_EQ(blobs(), (Names{name_of("{\"a\": 1}"), name_of("weights")}));
  EXPECT_FALSE(fs::exists(layout_.snapshot(kOld)));
  EXPECT_FALSE(fs::exists(layout_.tree(kOld)));
  EXPECT_TRUE(fs::exists(layout_.snapshot(kNew) / "config.json"));
  EXPECT_EQ(prune(only_model(), false), 0) << "nothing is left to delete";
}

TEST_F(CachedModels, AModelThatIsDownloadedIsNotChanged) {
  const DownloadLock lock(layout_.lock("x"), "file");
  EXPECT_TRUE(is_locked(layout_.lock("x")));
  for (const char* revision : {"", "v1"})
    EXPECT_TRUE(contains(error_of([&] { remove(only_model(), revision, false); }), "one that a process downloads now"));
  EXPECT_TRUE(contains(error_of([&] { prune(only_model(), false); }), "one that a process downloads now"));
  EXPECT_EQ(blobs().size(), 3u);
}

TEST(DownloadLock, IsHeldUntilItIsDestroyedAndNamesItsOwner) {
  const fs::path path = testing::scratch_folder() / "a/b.lock";
  EXPECT_FALSE(is_locked(path));
  {
    const DownloadLock lock(path, "file");
    EXPECT_TRUE(is_locked(path));
    std::ifstream in(path);
    std::string line;
    std::getline(in, line);
    EXPECT_TRUE(line.starts_with(str("process ", ::getpid(), " on "))) << line;
  }
  EXPECT_TRUE(fs::exists(path));
  EXPECT_FALSE(is_locked(path));
}

TEST_F(CachedModels, VerifyingNamesDamagedFiles) {
  int64_t bytes = 0;
  const auto verified = [&] { return verify(only_model(), [&](int64_t read) { bytes += read; }); };
  EXPECT_TRUE(verified().empty());
  EXPECT_EQ(bytes, 2 + 7 + 8);
  write(layout_.blobs() / name_of("weights"), "wEights");
  const std::vector<DamagedFile> damaged = verified();
  ASSERT_EQ(damaged.size(), 1u);
  EXPECT_EQ(damaged[0].path, layout_.blobs() / name_of("weights"));
  EXPECT_TRUE(contains(damaged[0].reason, "instead of " + name_of("weights"))) << damaged[0].reason;
  remove_damaged(damaged[0]);
  EXPECT_EQ(blobs().size(), 2u);
  EXPECT_EQ(verified().size(), 2u) << "the links of both revisions lead nowhere";
}

TEST_F(CachedModels, AFileWithoutALinkIsVerifiedByTheListOfTheHub) {
  const fs::path file = layout_.snapshot(kNew) / "config.json";
  fs::remove(file);
  write(file, "{\"a\": 2}");
  EXPECT_TRUE(verify(only_model(), [](int64_t) {}).empty()) << "without a list nothing is known";
  write_tree(layout_, kNew, trees_[kNew]);
  const std::vector<DamagedFile> damaged = verify(only_model(), [](int64_t) {});
  ASSERT_EQ(damaged.size(), 1u);
  EXPECT_EQ(damaged[0].path, file);
}

TEST_F(CachedModels, ACompleteRevisionIsFoundByEachOfItsNames) {
  write_tree(layout_, kNew, trees_[kNew]);
  EXPECT_EQ(find_cached({"org/name", "main"}), layout_.snapshot(kNew));
  EXPECT_EQ(find_cached({"org/name", kOld}), layout_.snapshot(kOld)) << "without a list, by its config.json";
  EXPECT_EQ(fetch({"org/name", "v1"}), layout_.snapshot(kOld));
  EXPECT_FALSE(find_cached({"org/name", "v2"}));
  EXPECT_FALSE(find_cached({"org/other", "main"}));
}

TEST_F(CachedModels, ADanglingLinkBesideTheModelIsIgnored) {
  for (const char* name : {"a.txt", "m.txt", "z.txt"}) fs::create_symlink("gone", layout_.snapshot(kOld) / name);
  EXPECT_EQ(find_cached({"org/name", "v1"}), layout_.snapshot(kOld));
}

TEST_F(CachedModels, AnIncompleteRevisionIsNotFound) {
  trees_[kNew]["tokenizer.json"] = file_of("{}");
  write_tree(layout_, kNew, trees_[kNew]);
  EXPECT_FALSE(find_cached({"org/name", "main"})) << "the hub lists a tokenizer";
  fs::remove(layout_.snapshot(kOld) / "config.json");
  EXPECT_FALSE(find_cached({"org/name", "v1"})) << "no configuration";
  add(kOld, "config.json", "{}");
  fs::remove(layout_.snapshot(kOld) / "model.safetensors");
  EXPECT_FALSE(find_cached({"org/name", "v1"})) << "no weights";
}

TEST_F(CachedModels, ARevisionWithoutOneOfItsShardsIsNotFound) {
  fs::remove(layout_.snapshot(kOld) / "model.safetensors");
  add(kOld, "model.safetensors.index.json", R"({"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}})");
  add(kOld, "a.safetensors", "a");
  EXPECT_FALSE(find_cached({"org/name", "v1"}));
  add(kOld, "b.safetensors", "b");
  EXPECT_EQ(find_cached({"org/name", "v1"}), layout_.snapshot(kOld));
}

TEST_F(CachedModels, AFileOfAnotherSizeThanTheHubListsIsAnError) {
  write_tree(layout_, kNew, trees_[kNew]);
  write(layout_.blobs() / name_of("weights"), "weight");
  EXPECT_TRUE(contains(error_of([&] {
                         find_cached({"org/name", "main"});
                       }),
                       "expected 7 bytes, as the hub lists, got 6"));
}

TEST_F(CachedModels, ALinkOutOfTheCacheIsAnError) {
  const fs::path outside = testing::scratch_folder() / "x";
  write(outside, "weights");
  fs::remove(layout_.snapshot(kOld) / "model.safetensors");
  fs::create_symlink(outside, layout_.snapshot(kOld) / "model.safetensors");
  EXPECT_TRUE(contains(error_of([&] { find_cached({"org/name", "v1"}); }), "a link to a file in"));
}

TEST(Snapshot, ABlobThatLeadsOutOfTheCacheIsAnError) {
  const Layout layout(testing::scratch_folder(), "org/name");
  const HubFile file = file_of("ok");
  const fs::path outside = testing::scratch_folder() / "x";
  write(outside, "ok");
  fs::create_directories(layout.blobs());
  fs::create_symlink(outside, layout.blobs() / file.etag());
  EXPECT_TRUE(contains(error_of([&] { has_blob(layout, file); }), "a link to a file in"));
  fs::create_directories(layout.snapshot(kOld));
  fs::create_symlink(outside, layout.snapshot(kOld) / "w");
  EXPECT_TRUE(contains(error_of([&] { is_in_snapshot(layout, kOld, "w", file); }), "a link to a file in"));
}

}  // namespace
}  // namespace vitrail::hub
