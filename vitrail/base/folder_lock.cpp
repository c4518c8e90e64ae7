// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/folder_lock_internal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"

namespace vitrail {

FolderLock::FolderLock(const std::filesystem::path& folder, std::chrono::milliseconds patience)
    : descriptor_(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + patience;
  while (descriptor_ >= 0 && ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    if (Clock::now() >= end) {
      warn(str(folder.empty() ? "." : folder.string(),
               ": another process keeps this folder locked: the files are replaced all the same"));
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace vitrail
