// SPDX-License-Identifier: Apache-2.0
#pragma once
// Locking a folder while files in it that belong together are replaced.
#include <chrono>
#include <filesystem>

namespace vitrail {

// Holds an exclusive lock on a folder (flock on its descriptor), which no other process or thread gets meanwhile.  A
// folder that cannot be opened and a file system without locks are accepted.  A lock that others keep for longer than
// `patience` is reported by a warning and ignored: it is not one of this class (`flock FOLDER vitrail …`).
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder,
                      std::chrono::milliseconds patience = std::chrono::seconds(10));
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
};

}  // namespace vitrail
