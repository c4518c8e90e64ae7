// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "vitrail/base/error.h"
#include "vitrail/train/append_only_file_internal.h"

namespace vitrail::train {
namespace fs = std::filesystem;

std::ofstream open_for_append(const fs::path& path, uint64_t keep) {
  std::error_code error;
  const bool exists = fs::exists(path, error);
  const uint64_t size = exists ? fs::file_size(path, error) : 0;
  if (size < keep) throw Error(path.string(), str("at least ", keep, " bytes, as the checkpoint says"), str(size));
  if (exists) fs::resize_file(path, keep, error);
  if (error) throw Error(str(path.string(), ": cannot be truncated: ", error.message()));
  std::ofstream stream(path, std::ios::binary | std::ios::app);
  if (!stream) throw Error(str(path.string(), ": cannot be written: ", std::strerror(errno)));
  return stream;
}

void flush_to_disk(std::ofstream& stream, const fs::path& path) {
  stream.flush();
  if (!stream) throw Error(str(path.string(), ": write failed: ", std::strerror(errno)));
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = file >= 0 && ::fsync(file) == 0;
  if (file >= 0) ::close(file);
  if (!synced) throw Error(str(path.string(), ": sync failed: ", std::strerror(errno)));
}

}  // namespace vitrail::train
