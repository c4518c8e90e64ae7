// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/output_guard_internal.h"

#include <algorithm>
#include <mutex>

#include "vitrail/base/error.h"

namespace vitrail {
namespace {

struct GuardedOutput {
  dev_t device;
  ino_t inode;
  bool was_read = false;
};

std::mutex guard_mutex;
std::vector<GuardedOutput> guarded;  // a few

// Requires the mutex.
GuardedOutput* find_guarded(const struct stat& status) {
  const auto found = std::ranges::find_if(guarded, [&](const GuardedOutput& output) {
    return output.device == status.st_dev && output.inode == status.st_ino;
  });
  return found == guarded.end() ? nullptr : &*found;
}

}  // namespace

void guard_outputs(const std::vector<std::string>& paths) {
  const std::lock_guard lock(guard_mutex);
  for (const std::string& path : paths) {
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode))
      guarded.push_back({status.st_dev, status.st_ino});
  }
}

void refuse_reading_outputs(const struct stat& opened, const std::filesystem::path& path) {
  {
    const std::lock_guard lock(guard_mutex);
    GuardedOutput* const output = find_guarded(opened);
    if (output == nullptr) return;
    output->was_read = true;
  }
  throw Error(path.string(), "another input than the file that the results replace", "that file");
}

bool was_read_as_input(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return false;
  const std::lock_guard lock(guard_mutex);
  const GuardedOutput* const output = find_guarded(status);
  if (output == nullptr) return false;
  const bool was_read = output->was_read;
  if (!was_read) guarded.erase(guarded.begin() + (output - guarded.data()));
  return was_read;
}

}  // namespace vitrail
