// SPDX-License-Identifier: Apache-2.0
#include "vitrail/hub/download_lock_internal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/utc_time_internal.h"
#include "vitrail/hub/layout_internal.h"

namespace vitrail::hub {
namespace fs = std::filesystem;
namespace {

using std::chrono::milliseconds;

std::string owner_text() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return str("process ", ::getpid(), " on ", host.data(), " since ", utc_time(), "\n");
}

// One line of the file, if the owner wrote it.
std::string owner_in(int descriptor) {
  std::array<char, 400> text{};
  const ssize_t size = ::pread(descriptor, text.data(), text.size(), 0);
  const std::string owner(text.data(), size > 0 ? static_cast<size_t>(size) : 0);
  return owner.starts_with("process ") ? owner.substr(0, owner.find('\n')) : "another process";
}

}  // namespace

DownloadLock::DownloadLock(const fs::path& path, const std::string& what) {
  create_folders(path.parent_path());
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor_ < 0) throw Error(str(path.string(), ": cannot be opened: ", std::strerror(errno)));
  // A call that waits would hang for good on some network file systems.
  constexpr milliseconds kInterval{100}, kQuiet{2000};
  for (milliseconds waited{0}; ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0; waited += kInterval) {
    if (errno != EWOULDBLOCK && errno != EINTR) return;  // no locks here
    if (waited == kQuiet) warn(str("waiting for ", owner_in(descriptor_), ", which downloads ", what));
    std::this_thread::sleep_for(kInterval);
  }
  const std::string owner = owner_text();
  if (::ftruncate(descriptor_, 0) == 0)
    static_cast<void>(::pwrite(descriptor_, owner.data(), owner.size(), 0) > 0);  // only for the warning of others
}

DownloadLock::~DownloadLock() { ::close(descriptor_); }

bool is_locked(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return false;
  const bool locked = ::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(descriptor);
  return locked;
}

}  // namespace vitrail::hub
