// SPDX-License-Identifier: Apache-2.0
#pragma once
// The lock of a file that is downloaded.
#include <filesystem>

namespace vitrail::hub {

// Holds the lock of huggingface_hub (flock) on `path` until it is destroyed.  The file names the owner, for the warning
// of those that wait for it.  The system releases the lock of a process that ends.  A file system without locks gives
// none: then the caller alone is assumed.
class DownloadLock {
 public:
  // what: the file that is downloaded, for the warning.
  DownloadLock(const std::filesystem::path& path, const std::string& what);
  ~DownloadLock();
  DownloadLock(const DownloadLock&) = delete;
  DownloadLock& operator=(const DownloadLock&) = delete;

 private:
  int descriptor_ = -1;
};

// Whether some process holds the lock.
bool is_locked(const std::filesystem::path& path);

}  // namespace vitrail::hub
