// SPDX-License-Identifier: Apache-2.0
// Listing, verifying and tidying the cache.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "tests/hub/cache_files.h"
#include "tests/hub/hub_server.h"
#include "tests/support/errors.h"
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
    write_file(layout_.ref("main"), kNew);
    write_file(layout_.ref("v1"), kOld + "\n");
  }
  void add(const std::string& commit, const std::string& path, const std::string& content) {
    const HubFile file = file_of(content);
    if (!fs::exists(layout_.blobs() / file.etag())) write_file(layout_.blobs() / file.etag(), content);
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
  write_file(cache_ / "datasets--org--data/blobs/x", "data");
  write_file(cache_ / "version.txt", "1");
  write_file(layout_.blobs() / "x.incomplete", "part");
  write_file(layout_.blobs() / "unused", "12345");
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
  write_file(layout_.blobs() / "x.incomplete", "part");
  remove(only_model(), kNew, false);
  EXPECT_EQ(blobs(), (Names{name_of("{}"), name_of("weights"), "x.incomplete"}));
  EXPECT_FALSE(fs::exists(layout_.snapshot(kNew)));
  EXPECT_FALSE(fs::exists(layout_.ref("main")));
  EXPECT_TRUE(fs::exists(layout_.ref("v1")));
  EXPECT_TRUE(
      contains(error_of([&] { remove(only_model(), "main", false); }), "a revision in the cache (v1), got main"));
}

TEST_F(CachedModels, RemovingAModelDeletesItsFolderAndLocks) {
  write_file(layout_.lock("x"), "");
  remove(only_model(), "", false);
  EXPECT_FALSE(fs::exists(layout_.folder()));
  EXPECT_FALSE(fs::exists(layout_.lock("x").parent_path()));
  EXPECT_TRUE(cached_models().empty());
}

TEST_F(CachedModels, PruningDeletesWhatNoReferenceNeeds) {
  fs::remove(layout_.ref("v1"));
  write_file(layout_.tree(kOld), "{}");
  write_file(layout_.blobs() / "unused", "12345");
  write_file(layout_.blobs() / "x.vitrail-partial", "part");
  write_file(layout_.blobs() / "x.vitrail-etag", "t");
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
  write_file(layout_.blobs() / name_of("weights"), "wEights");
  const std::vector<DamagedFile> damaged = verified();
  ASSERT_EQ(damaged.size(), 1u);
  EXPECT_EQ(damaged[0].path, layout_.blobs() / name_of("weights"));
  EXPECT_TRUE(contains(damaged[0].reason, "instead of " + name_of("weights"))) << damaged[0].reason;
  EXPECT_TRUE(remove_damaged(only_model(), damaged[0]));
  EXPECT_EQ(blobs().size(), 2u);
  EXPECT_EQ(verified().size(), 2u) << "the links of both revisions lead nowhere";
}

TEST_F(CachedModels, AFileWithoutALinkIsVerifiedByTheListOfTheHub) {
  const fs::path file = layout_.snapshot(kNew) / "config.json";
  fs::remove(file);
  write_file(file, "{\"a\": 2}");
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
  write_file(layout_.blobs() / name_of("weights"), "weight");
  EXPECT_TRUE(contains(error_of([&] {
                         find_cached({"org/name", "main"});
                       }),
                       "expected 7 bytes, as the hub lists, got 6"));
}

// A user has moved a part of the cache to another disk, and linked it.
class LinkedFolders : public CachedModels, public ::testing::WithParamInterface<const char*> {
 protected:
  LinkedFolders() {
    const std::map<std::string, fs::path> moved{{"blobs", layout_.blobs()},
                                                {"blob", layout_.blobs() / name_of("weights")},
                                                {"snapshots", layout_.snapshots()},
                                                {"snapshot", layout_.snapshot(kOld)},
                                                {"file", layout_.snapshot(kOld) / "model.safetensors"},
                                                {"model", layout_.folder()}};
    write_tree(layout_, kOld, trees_[kOld]);
    const fs::path path = moved.at(GetParam());
    if (std::string(GetParam()).starts_with("snapshot")) {  // their links are relative
      for (const auto& entry : fs::recursive_directory_iterator(path)) {
        if (!fs::is_symlink(entry.path())) continue;
        const fs::path target = fs::canonical(entry.path());
        fs::remove(entry.path());
        fs::create_symlink(target, entry.path());
      }
    }
    if (fs::is_symlink(path)) {
      fs::copy_file(path, disk_ / "moved");
      fs::remove(path);
    } else {
      fs::rename(path, disk_ / "moved");
    }
    fs::create_symlink(disk_ / "moved", path);
    write_file(disk_ / "photos" / "a.jpg", "the user's");
  }
  // The files on the other disk with their contents.
  std::map<std::string, std::string> on_disk() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(disk_)) {
      if (entry.is_symlink() || entry.is_directory()) {
        files[entry.path()] = "";
        continue;
      }
      std::ifstream in(entry.path());
      files[entry.path()] = {std::istreambuf_iterator<char>(in), {}};
    }
    return files;
  }

  const fs::path disk_ = testing::scratch_folder();
};

TEST_P(LinkedFolders, AreFollowed) {
  EXPECT_EQ(find_cached({"org/name", "v1"}), layout_.snapshot(kOld));
  EXPECT_EQ(find_cached({"org/name", "main"}), layout_.snapshot(kNew));
  EXPECT_TRUE(verify(only_model(), [](int64_t) {}).empty());
  EXPECT_EQ(only_model().revisions.size(), 2U);
}

TEST_P(LinkedFolders, KeepWhatIsBehindThem) {
  write_file(layout_.blobs() / "unused", "12345");
  write_file(layout_.blobs() / "x.vitrail-partial", "part");
  write_file(layout_.blobs() / name_of("weights"), "wEights");
  fs::remove(layout_.ref("v1"));
  const auto before = on_disk();
  const testing::Warnings warnings;
  for (const DamagedFile& file : verify(only_model(), [](int64_t) {})) remove_damaged(only_model(), file);
  EXPECT_EQ(on_disk(), before) << "verify";
  for (const bool dry_run : {true, false}) prune(only_model(), dry_run);
  EXPECT_EQ(on_disk(), before) << "prune";
  remove(only_model(), "main", false);
  EXPECT_EQ(on_disk(), before) << "remove a revision";
  const CachedModel model = only_model();
  remove(model, "", false);
  EXPECT_EQ(on_disk(), before) << "remove the model";
  EXPECT_FALSE(fs::exists(fs::symlink_status(layout_.folder())));
}

INSTANTIATE_TEST_SUITE_P(Moved, LinkedFolders,
                         ::testing::Values("blobs", "blob", "snapshots", "snapshot", "file", "model"),
                         [](const auto& test) { return std::string(test.param); });

TEST_F(CachedModels, WhatStaysBehindALinkIsSaid) {
  const fs::path disk = testing::scratch_folder() / "disk";
  write_file(layout_.blobs() / "unused", "12345");
  fs::rename(layout_.blobs(), disk);
  fs::create_symlink(disk, layout_.blobs());
  const testing::Warnings warnings;
  EXPECT_EQ(prune(only_model(), false), 0);
  EXPECT_EQ(warnings.messages,
            std::vector<std::string>{fs::canonical(disk).string() + ": stays, because a link leads there"});
  write_file(disk / name_of("weights"), "wEights");
  const std::vector<DamagedFile> damaged = verify(only_model(), [](int64_t) {});
  ASSERT_EQ(damaged.size(), 1U);
  EXPECT_FALSE(remove_damaged(only_model(), damaged[0]));
}

// A folder of blobs that several models share within the cache has those of others.
TEST_F(CachedModels, ASharedFolderOfBlobsIsNotPruned) {
  fs::rename(layout_.blobs(), cache_ / "shared");
  fs::create_symlink("../shared", layout_.blobs());
  write_file(cache_ / "shared" / "of_another_model", "12345");
  const testing::Warnings warnings;
  EXPECT_EQ(prune(only_model(), false), 0);
  EXPECT_TRUE(fs::exists(cache_ / "shared" / "of_another_model"));
}

// What waits for a writer would wait forever.
TEST_F(CachedModels, PipesAreNotRead) {
  const std::string digest(64, 'd');
  fs::create_directories(layout_.tree(kOld).parent_path());
  for (const fs::path& path : {layout_.ref("pipe"), layout_.blobs() / digest, layout_.tree(kOld),
                               layout_.snapshot(kOld) / "tokenizer.json", layout_.lock("x")}) {
    fs::create_directories(path.parent_path());
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0) << path;
  }
  EXPECT_EQ(find_cached({"org/name", "v1"}), layout_.snapshot(kOld));
  EXPECT_FALSE(find_cached({"org/name", "pipe"}));
  const std::vector<DamagedFile> damaged = verify(only_model(), [](int64_t) {});
  ASSERT_EQ(damaged.size(), 1U);
  EXPECT_EQ(damaged[0].path, layout_.blobs() / digest);
  EXPECT_EQ(damaged[0].reason, "is no file");
  EXPECT_EQ(prune(only_model(), true), 0);
  remove(only_model(), "", false);
  EXPECT_FALSE(fs::exists(layout_.folder()));
}

// What is here is all that can be had.
TEST_F(CachedModels, OfflineAModelWithoutATokenizerIsOneForImages) {
  trees_[kNew]["tokenizer.json"] = trees_[kNew]["tokenizer_config.json"] = file_of("{}");
  write_tree(layout_, kNew, trees_[kNew]);
  EXPECT_FALSE(find_cached({"org/name", "main"}));
  const Environment offline({{"HF_HUB_OFFLINE", std::string("1")}});
  EXPECT_EQ(find_cached({"org/name", "main"}), layout_.snapshot(kNew));
  EXPECT_EQ(pull({"org/name", "main"}), layout_.snapshot(kNew));
  add(kNew, "tokenizer.json", "{}");
  EXPECT_FALSE(find_cached({"org/name", "main"})) << "a part of the tokenizer could give other tokens";
  add(kNew, "tokenizer_config.json", "{}");
  EXPECT_EQ(find_cached({"org/name", "main"}), layout_.snapshot(kNew));
  trees_[kNew]["preprocessor_config.json"] = file_of("{}");
  write_tree(layout_, kNew, trees_[kNew]);
  EXPECT_FALSE(find_cached({"org/name", "main"})) << "images would be preprocessed differently";
}

TEST_F(CachedModels, AReferenceMayBeInAFolderAndEndWithWhiteSpace) {
  write_file(layout_.ref("refs/pr/1"), kOld + " \r\n");
  write_file(layout_.ref("v0"), kOld);
  write_file(layout_.ref("long"), std::string(257, 'x'));
  write_file(layout_.ref("other"), std::string(40, 'f'));
  const CachedModel model = only_model();
  ASSERT_EQ(model.revisions.size(), 2u);
  EXPECT_EQ(model.revisions[0].refs, (std::vector<std::string>{"refs/pr/1", "v0", "v1"}));
  EXPECT_EQ(model.revisions[1].refs, std::vector<std::string>{"main"});
  EXPECT_EQ(model.folder, layout_.folder());
}

TEST_F(CachedModels, AreSortedByName) {
  for (const char* name : {"models--z--a", "models--a--z", "models--noslash", "other"})
    write_file(cache_ / name / "refs/main", kOld);
  std::vector<std::string> names;
  for (const CachedModel& model : cached_models()) names.push_back(model.repository);
  EXPECT_EQ(names, (std::vector<std::string>{"a/z", "org/name", "z/a"}));
  EXPECT_EQ(cached_models()[0].bytes, 0);
  EXPECT_TRUE(cached_models()[0].revisions.empty());
}

TEST_F(CachedModels, AWrongRevisionIsNamedBesideTheKnownOnes) {
  EXPECT_ERROR(error_of([&] { remove(only_model(), "v2", false); }), "org/name", "v2");
  fs::remove(layout_.ref("v1"));
  EXPECT_EQ(error_of([&] { remove(only_model(), "v1", false); }),
            "org/name: expected a revision in the cache (" + kOld + ", main), got v1");
  const DownloadLock lock(layout_.lock("x"), "file");
  const std::string used = "org/name: expected a model that no process downloads, got one that a process downloads now";
  EXPECT_EQ(error_of([&] { remove(only_model(), "main", true); }), used);
  EXPECT_EQ(error_of([&] { prune(only_model(), true); }), used);
}

TEST_F(CachedModels, RemovingARevisionDeletesItsTreeAndAllItsReferences) {
  write_file(layout_.ref("v0"), kOld);
  write_file(layout_.tree(kOld), "12345");
  write_file(layout_.tree(kNew), "123456");
  EXPECT_EQ(remove(only_model(), kOld, false), 2 + 41 + 40 + 5);
  EXPECT_FALSE(fs::exists(layout_.ref("v0")) || fs::exists(layout_.ref("v1")) || fs::exists(layout_.tree(kOld)));
  EXPECT_TRUE(fs::exists(layout_.ref("main")) && fs::exists(layout_.tree(kNew)));
  EXPECT_EQ(remove(only_model(), "main", false), 7 + 8 + 40 + 6);
  EXPECT_TRUE(blobs().empty());
}

TEST_F(CachedModels, RemovingAModelGivesAllItsBytes) {
  write_file(layout_.lock("x"), "123");
  EXPECT_EQ(remove(only_model(), "", true), 2 + 7 + 8 + 40 + 41 + 3) << "blobs, references and locks";
  EXPECT_TRUE(fs::exists(layout_.folder()) && fs::exists(layout_.lock("x"))) << "a dry run";
  EXPECT_EQ(remove(only_model(), "", false), 2 + 7 + 8 + 40 + 41 + 3);
  EXPECT_FALSE(fs::exists(layout_.folder()) || fs::exists(layout_.lock("x")));
}

// A file that is no link counts itself, and its blob is one that nothing uses.
TEST_F(CachedModels, AFileOfItsOwnCountsAndKeepsNoBlob) {
  const fs::path file = layout_.snapshot(kNew) / "config.json";
  fs::remove(file);
  write_file(file, "{\"a\": 2345}");
  EXPECT_EQ(only_model().bytes, 2 + 7 + 8 + 11);
  EXPECT_EQ(only_model().revisions[1].bytes, 7 + 11);
  EXPECT_EQ(prune(only_model(), false), 8);
  EXPECT_EQ(blobs(), (Names{name_of("{}"), name_of("weights")}));
}

TEST_F(CachedModels, VerifyingReadsWhatADigestNames) {
  write_file(layout_.blobs() / std::string(41, 'a'), "no digest");
  write_file(layout_.blobs() / std::string(40, 'A'), "no digest");
  write_file(layout_.blobs() / (std::string(40, 'a') + ".incomplete"), "no digest");
  const std::string sha256(64, 'a');
  write_file(layout_.blobs() / sha256, "abc");
  std::vector<int64_t> sizes;
  const auto damaged = verify(only_model(), [&](int64_t bytes) { sizes.push_back(bytes); });
  ASSERT_EQ(damaged.size(), 1u);
  EXPECT_EQ(damaged[0].path, layout_.blobs() / sha256);
  EXPECT_EQ(damaged[0].reason,
            "its content has the digest ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad instead of " +
                sha256);
  std::ranges::sort(sizes);
  EXPECT_EQ(sizes, (std::vector<int64_t>{2, 3, 7, 8}));
}

TEST_F(CachedModels, VerifyingNamesLinksThatLeadNowhere) {
  fs::create_symlink("gone", layout_.snapshot(kNew) / "z");
  const auto damaged = verify(only_model(), [](int64_t) {});
  ASSERT_EQ(damaged.size(), 1u);
  EXPECT_EQ(damaged[0].path, layout_.snapshot(kNew) / "z");
  EXPECT_EQ(damaged[0].reason, "No such file or directory");
}

// The list of the hub has its digest.
TEST_F(CachedModels, AFileThatIsLinkedElsewhereIsVerifiedToo) {
  const fs::path elsewhere = testing::scratch_folder() / "weights", file = layout_.snapshot(kNew) / "model.safetensors";
  write_tree(layout_, kNew, trees_[kNew]);
  write_file(elsewhere, "wEights");
  fs::remove(file);
  fs::create_symlink(elsewhere, file);
  const auto damaged = verify(only_model(), [](int64_t) {});
  ASSERT_EQ(damaged.size(), 1u);
  EXPECT_EQ(damaged[0].path, file);
  EXPECT_TRUE(remove_damaged(only_model(), damaged[0]));
  EXPECT_TRUE(fs::exists(elsewhere)) << "only the link is deleted";
}

// Content of more than one buffer, whose last part is short.
TEST_F(CachedModels, LargeFilesAreReadToTheirEnd) {
  std::string content(200'000, 'x');
  add(kNew, "large", content);
  EXPECT_TRUE(verify(only_model(), [](int64_t) {}).empty());
  content.back() = 'y';
  write_file(layout_.snapshot(kNew) / "large", content);
  EXPECT_EQ(verify(only_model(), [](int64_t) {}).size(), 1u);
}

TEST_F(CachedModels, ASizeThatIsNotTheHubsSaysWhatToDo) {
  write_tree(layout_, kNew, trees_[kNew]);
  write_file(layout_.blobs() / name_of("weights"), "weight");
  EXPECT_ERROR(
      error_of([&] {
        find_cached({"org/name", "main"});
      }),
      (layout_.snapshot(kNew) / "model.safetensors").string(),
      "6; vitrail cache verify org/name --remove deletes damaged files, and vitrail pull org/name gets them again");
}

TEST_F(CachedModels, AConfigurationOfOpenClipIsOneToo) {
  fs::rename(layout_.snapshot(kOld) / "config.json", layout_.snapshot(kOld) / "open_clip_config.json");
  EXPECT_EQ(find_cached({"org/name", "v1"}), layout_.snapshot(kOld));
  fs::rename(layout_.snapshot(kOld) / "open_clip_config.json", layout_.snapshot(kOld) / "other_config.json");
  EXPECT_FALSE(find_cached({"org/name", "v1"}));
}

TEST_F(CachedModels, ConfigurationsBesideTheWeightsAreChecked) {
  write_tree(layout_, kNew, trees_[kNew]);
  write_file(layout_.blobs() / name_of("{\"a\": 1}"), "{\"a\": 12}");
  EXPECT_TRUE(contains(error_of([&] { find_cached({"org/name", "main"}); }), "config.json: expected 8 bytes"));
  add(kNew, "notes.txt", "1234");
  trees_[kNew]["notes.txt"].size = 5;
  trees_[kNew].erase("config.json");
  write_tree(layout_, kNew, trees_[kNew]);
  EXPECT_EQ(find_cached({"org/name", "main"}), layout_.snapshot(kNew)) << "files that a model is not opened with";
}

}  // namespace
}  // namespace vitrail::hub
