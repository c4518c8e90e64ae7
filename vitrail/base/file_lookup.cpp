// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/file_lookup_internal.h"

#include <system_error>

#include "vitrail/base/error.h"

namespace vitrail {
namespace fs = std::filesystem;

PathKind look_up(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::none) {
    throw Error(str(path.string(), ": cannot be opened: ", error.message()));
  }
  if (status.type() == fs::file_type::not_found) return PathKind::missing;
  return status.type() == fs::file_type::directory ? PathKind::folder : PathKind::other;
}

}  // namespace vitrail
