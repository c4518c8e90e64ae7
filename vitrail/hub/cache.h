// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the hub's cache has, and tidying it.  Only models are listed and deleted: datasets stay as they are.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace vitrail::hub {

struct CachedRevision {
  std::string commit;
  std::vector<std::string> refs;  // branches and tags that stood for it; empty: only its commit names it
  int64_t files = 0, bytes = 0;
};

struct CachedModel {
  std::string repository;  // "organisation/name"
  std::filesystem::path folder;
  std::vector<CachedRevision> revisions;
  int64_t bytes = 0;          // on disk: files of several revisions count once
  int64_t partial_bytes = 0;  // what interrupted downloads have left
};

std::filesystem::path cache_folder();

// Sorted by name.  A cache that does not exist is empty.
std::vector<CachedModel> cached_models();

struct DamagedFile {
  std::filesystem::path path;
  std::string reason;
};

// Compares the content of each file with the digest that names it.  Calls on_file with the number of bytes after each.
std::vector<DamagedFile> verify(const CachedModel& model, const std::function<void(int64_t bytes)>& on_file);

// Returns false for a file behind a link that the user made, which stays.
bool remove_damaged(const CachedModel& model, const DamagedFile& file);

// The following return the bytes that become free, and with dry_run delete nothing.  They throw Error for a model that
// another process downloads.  What is behind a link that the user made, such as to another disk, stays with a warning.
//
// Deletes a revision, given as a branch, a tag or a commit, and the files that no other revision has; empty: the model.
// Throws Error for a revision that is not there.
int64_t remove(const CachedModel& model, const std::string& revision, bool dry_run);

// Deletes revisions that no branch or tag stands for any more, files of no revision and interrupted downloads.
int64_t prune(const CachedModel& model, bool dry_run);

}  // namespace vitrail::hub
