// SPDX-License-Identifier: Apache-2.0
// tests/hub/download_test.py tests the cache with downloads.
#include "vitrail/hub/cache.h"

#include <gtest/gtest.h>

#include "tests/hub/cache_files.h"
#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/hub/download_lock_internal.h"
#include "vitrail/hub/file_list_internal.h"
#include "vitrail/hub/layout_internal.h"
#include "vitrail/hub/snapshot_internal.h"
#include "vitrail/text/tokenizer_files_internal.h"

namespace vitrail::hub {
namespace {

namespace fs = std::filesystem;

TEST(Layout, ARevisionIsACommitOrTheOneInItsFile) {
  const Layout layout(testing::scratch_folder(), "org/name");
  EXPECT_EQ(layout.commit_of(kCommit), kCommit);
  EXPECT_FALSE(layout.commit_of("main"));
  write_file(layout.ref("main"), kCommit + "\n");
  EXPECT_EQ(layout.commit_of("main"), kCommit);
  for (const std::string& text : {std::string("../../x"), std::string(39, 'c'), std::string(41, 'c'), std::string()}) {
    write_file(layout.ref("bad"), text);
    EXPECT_THROW(layout.commit_of("bad"), Error) << text;
  }
}

TEST(Layout, FoldersOfModelsNameTheRepository) {
  EXPECT_EQ(repository_of("models--org--my-name"), "org/my-name");
  EXPECT_FALSE(repository_of("models--gpt2"));
  EXPECT_FALSE(repository_of("datasets--org--name"));
}

TEST(FileList, IsTheSameAfterWritingAndReading) {
  const Layout layout(testing::scratch_folder(), "org/name");
  FileList files;
  add_listed_files(R"([{"type":"directory","path":"a"},{"type":"file","path":"a/b","size":3,"oid":")" +
                       std::string(40, '1') + R"("},{"type":"file","path":"w","size":130,"oid":")" +
                       std::string(40, '2') + R"(","lfs":{"oid":")" + std::string(64, '3') +
                       R"(","size":7},"xetHash":"x"}])",
                   "reply", files);
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files["w"].size, 7);
  EXPECT_EQ(files["w"].etag(), std::string(64, '3'));
  write_tree(layout, kCommit, files);
  const auto read = read_tree(layout, kCommit);
  ASSERT_TRUE(read);
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ(read->at("w").etag(), files["w"].etag());
  EXPECT_EQ(read->at("w").xet_hash, "x");
  EXPECT_EQ(read->at("a/b").size, 3);
}

TEST(FileList, WhatTokenizersReadIsNeededAndNothingElseOfThem) {
  for (const char* name : text::kTokenizerFiles) EXPECT_TRUE(is_needed_beside_weights(name)) << name;
  for (const char* name : text::kTokenizerCompanions) EXPECT_TRUE(is_needed_beside_weights(name)) << name;
  EXPECT_FALSE(is_needed_beside_weights("tokenizer.model"));
}

TEST(FileList, OtherRepliesAreErrors) {
  FileList files;
  for (const char* reply : {"", "{}", "[1]", R"([{"type":"file"}])", R"([{"type":"file","path":1,"size":1,"oid":""}])",
                            R"([{"type":"file","path":"a","size":-1,"oid":"x"}])"}) {
    EXPECT_THROW(add_listed_files(reply, "reply", files), Error) << reply;
  }
}

TEST(Layout, OwnsWhatIsInItsFolderWithLinksResolved) {
  const fs::path root = testing::scratch_folder(), cache = root / "cache";
  const Layout layout(cache, "org/name");
  for (const fs::path& file : {layout.blobs() / "x", root / "disk" / "x", layout.lock("x"), cache / "blobs" / "x",
                               cache / "models--org--name2" / "blobs" / "x"})
    write_file(file, "x");
  fs::create_symlink(root / "disk", layout.folder() / "snapshots");
  fs::create_symlink(root / "disk" / "x", layout.blobs() / "link");
  fs::create_symlink(cache, root / "other_name");
  for (const fs::path& own : {layout.folder(), layout.blobs(), layout.blobs() / "x", layout.blobs() / "link",
                              layout.snapshots(), layout.lock("x").parent_path()})
    EXPECT_TRUE(layout.owns(own)) << own;
  EXPECT_TRUE(Layout(root / "other_name", "org/name").owns(root / "other_name" / "models--org--name" / "blobs"));
  for (const fs::path& other : {layout.snapshots() / "x", root / "disk" / "x", cache, cache / "blobs",
                                cache / "blobs" / "x", cache / "models--org--name2" / "blobs" / "x", root / "absent/x"})
    EXPECT_FALSE(layout.owns(other)) << other;
  EXPECT_ERROR(testing::error_of([&] { layout.remove_own(layout.snapshots() / "x"); }),
               (layout.snapshots() / "x").string(), "one behind a link, which is not deleted");
  layout.remove_own(layout.blobs() / "link");
  layout.remove_own(layout.snapshots());
  layout.remove_own(layout.snapshots());  // is not there
  EXPECT_TRUE(fs::exists(root / "disk" / "x"));
  EXPECT_FALSE(fs::exists(fs::symlink_status(layout.snapshots())));
}

// A file of two bytes whose blob is in the cache.
HubFile cached_file(const Layout& layout) {
  const HubFile file{.size = 2, .blob_id = std::string(40, 'a'), .lfs_sha256 = {}, .xet_hash = {}};
  write_file(layout.blobs() / file.etag(), "ok");
  return file;
}

TEST(Snapshot, LinksToTheBlobFromAnyDepth) {
  const Layout layout(testing::scratch_folder(), "org/name");
  const HubFile file = cached_file(layout);
  for (const std::string path : {"w", "a/w", "a/b/w"}) {
    EXPECT_FALSE(is_in_snapshot(layout, kCommit, path, file));
    add_to_snapshot(layout, kCommit, path, file, true);
    const fs::path added = layout.snapshot(kCommit) / path;
    EXPECT_TRUE(fs::read_symlink(added).is_relative());
    EXPECT_TRUE(fs::equivalent(added, layout.blobs() / file.etag())) << path;
    EXPECT_TRUE(is_in_snapshot(layout, kCommit, path, file));
  }
}

TEST(Snapshot, WithoutLinksTheBlobIsMoved) {
  const Layout layout(testing::scratch_folder(), "org/name");
  const HubFile file = cached_file(layout);
  add_to_snapshot(layout, kCommit, "a/w", file, false);
  EXPECT_FALSE(fs::is_symlink(layout.snapshot(kCommit) / "a/w"));
  EXPECT_TRUE(is_in_snapshot(layout, kCommit, "a/w", file));
  EXPECT_FALSE(has_blob(layout, file));
}

TEST(Snapshot, ABlobOfAnotherSizeIsDeleted) {
  const Layout layout(testing::scratch_folder(), "org/name");
  const HubFile file = cached_file(layout);
  EXPECT_TRUE(has_blob(layout, file));
  for (const char* content : {"", "o", "ok!"}) {
    write_file(layout.blobs() / file.etag(), content);
    EXPECT_FALSE(has_blob(layout, file)) << content;
    EXPECT_FALSE(fs::exists(layout.blobs() / file.etag())) << content;
  }
}

TEST(Layout, HasThePathsOfHuggingfaceHub) {
  const Layout layout("/cache", "org/name--x");
  EXPECT_EQ(layout.cache(), "/cache");
  EXPECT_EQ(layout.folder(), "/cache/models--org--name--x");
  EXPECT_EQ(layout.ref("refs/pr/1"), "/cache/models--org--name--x/refs/refs/pr/1");
  EXPECT_EQ(layout.blobs(), "/cache/models--org--name--x/blobs");
  EXPECT_EQ(layout.snapshots(), "/cache/models--org--name--x/snapshots");
  EXPECT_EQ(layout.snapshot("c"), "/cache/models--org--name--x/snapshots/c");
  EXPECT_EQ(layout.tree("c"), "/cache/models--org--name--x/trees/c.json");
  EXPECT_EQ(layout.lock("e"), "/cache/.locks/models--org--name--x/e.lock");
  EXPECT_EQ(repository_of("models--org--name--x"), "org/name--x") << "at the first separator";
  EXPECT_FALSE(repository_of("models--"));
  EXPECT_FALSE(repository_of("model--org--name"));
}

TEST(Layout, ACommitEndsAtWhiteSpace) {
  const Layout layout(testing::scratch_folder(), "org/name");
  for (const std::string end : {"", "\n", "\r\n", " comment", "\tx"}) {
    write_file(layout.ref("main"), kCommit + end);
    EXPECT_EQ(layout.commit_of("main"), kCommit) << end;
  }
  write_file(layout.ref("main"), kCommit + "x");
  EXPECT_ERROR(testing::error_of([&] { layout.commit_of("main"); }), layout.ref("main").string(), "other text");
  EXPECT_FALSE(layout.commit_of(std::string(39, 'c'))) << "a branch that is absent";
  EXPECT_FALSE(layout.commit_of(std::string(40, 'C')));
}

TEST(Layout, AFolderThatCannotBeCreatedIsNamed) {
  const fs::path cache = testing::scratch_folder();
  write_file(cache / "file", "x");
  create_folders(cache / "a/b");
  EXPECT_TRUE(fs::is_directory(cache / "a/b"));
  EXPECT_EQ(testing::error_of([&] { create_folders(cache / "file" / "b"); }),
            (cache / "file" / "b").string() +
                ": cannot be created: Not a directory. HF_HUB_CACHE names another folder for the cache");
}

// On another disk, it is the user's.
TEST(Snapshot, ABlobOfAnotherSizeBehindALinkStays) {
  const fs::path root = testing::scratch_folder();
  const Layout layout(root / "cache", "org/name");
  const HubFile file = cached_file(layout);
  fs::rename(layout.blobs(), root / "disk");
  fs::create_symlink(root / "disk", layout.blobs());
  EXPECT_TRUE(has_blob(layout, file));
  add_to_snapshot(layout, kCommit, "w", file, false);
  EXPECT_TRUE(has_blob(layout, file)) << "copied, not moved";
  EXPECT_TRUE(is_in_snapshot(layout, kCommit, "w", file));
  write_file(root / "disk" / file.etag(), "longer");
  EXPECT_TRUE(testing::contains(testing::error_of([&] { has_blob(layout, file); }), "which is not deleted"));
  EXPECT_TRUE(fs::exists(root / "disk" / file.etag()));
}

TEST(Snapshot, AFileOfAnotherSizeIsReplacedByALink) {
  const Layout layout(testing::scratch_folder(), "org/name");
  const HubFile file = cached_file(layout);
  const fs::path path = layout.snapshot(kCommit) / "w";
  write_file(path, "cut short");
  EXPECT_FALSE(is_in_snapshot(layout, kCommit, "w", file));
  add_to_snapshot(layout, kCommit, "w", file, true);
  EXPECT_EQ(fs::read_symlink(path), "../../blobs/" + file.etag());
  EXPECT_TRUE(is_in_snapshot(layout, kCommit, "w", file));
  add_to_snapshot(layout, kCommit, "a/b/w", file, true);
  EXPECT_EQ(fs::read_symlink(layout.snapshot(kCommit) / "a/b/w"), "../../../../blobs/" + file.etag());
  add_to_snapshot(layout, kCommit, "w", file, false);
  EXPECT_TRUE(fs::is_symlink(path)) << "what is there stays";
}

TEST(Snapshot, WithoutTheBlobNothingCanBeMoved) {
  const Layout layout(testing::scratch_folder(), "org/name");
  const HubFile file{.size = 2, .blob_id = std::string(40, 'a'), .lfs_sha256 = {}, .xet_hash = {}};
  EXPECT_FALSE(has_blob(layout, file));
  EXPECT_EQ(testing::error_of([&] { add_to_snapshot(layout, kCommit, "w", file, false); }),
            (layout.snapshot(kCommit) / "w").string() + ": cannot be written: No such file or directory");
}

TEST(DownloadLockFile, ThatCannotBeOpenedIsNamed) {
  const fs::path folder = testing::scratch_folder();
  fs::create_directories(folder / "a.lock");
  EXPECT_EQ(testing::error_of([&] { DownloadLock(folder / "a.lock", "what"); }),
            (folder / "a.lock").string() + ": cannot be opened: Is a directory");
  EXPECT_FALSE(is_locked(folder / "absent.lock"));
}

}  // namespace
}  // namespace vitrail::hub
