// SPDX-License-Identifier: Apache-2.0
#pragma once
// The layout of huggingface_hub's cache:
//   CACHE/models--ORG--NAME/refs/REVISION             the commit, 40 digits
//                           blobs/ETAG                 SHA-256 (64 digits) or git's SHA-1 (40) of the content
//                           snapshots/COMMIT/FILE      a relative link to the blob, or the file itself
//                           trees/COMMIT.json          all files of the commit (file_list_internal.h)
//   CACHE/.locks/models--ORG--NAME/ETAG.lock
// Since version 2.4 a blob may be a link to CACHE/blobs/, which is shared by all repositories.
#include <filesystem>
#include <optional>
#include <string>

namespace vitrail::hub {

// The folders and files of one repository in the cache.
class Layout {
 public:
  Layout(const std::filesystem::path& cache, const std::string& repository);

  const std::filesystem::path& cache() const { return cache_; }
  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path ref(const std::string& revision) const { return folder_ / "refs" / revision; }
  std::filesystem::path blobs() const { return folder_ / "blobs"; }
  std::filesystem::path snapshots() const { return folder_ / "snapshots"; }
  std::filesystem::path snapshot(const std::string& commit) const { return snapshots() / commit; }
  std::filesystem::path tree(const std::string& commit) const { return folder_ / "trees" / (commit + ".json"); }
  std::filesystem::path lock(const std::string& etag) const;

  // Whether an entry is in the model's own folder, or this folder itself, with all links above it resolved.  Only such
  // entries are deleted: what is behind a link that the user made stays.
  bool owns(const std::filesystem::path& entry) const;
  // Deletes an entry, of a link only the link.  Throws Error for one that the folder does not own.
  void remove_own(const std::filesystem::path& entry) const;

  // The commit that a revision stood for when it was last downloaded; a commit stands for itself.
  std::optional<std::string> commit_of(const std::string& revision) const;

 private:
  std::filesystem::path cache_, folder_;
};

// "org/name" of a folder's name "models--org--name"; nothing for others.
std::optional<std::string> repository_of(const std::string& folder_name);

// Throws Error if the folder, and those above it, cannot be created.
void create_folders(const std::filesystem::path& folder);

}  // namespace vitrail::hub
