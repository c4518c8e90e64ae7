// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/final_target_internal.h"

#include <system_error>

namespace vitrail {

namespace fs = std::filesystem;

fs::path final_target(fs::path path) {
  constexpr int kMaxLinks = 40;  // as in Linux
  std::error_code error;
  for (int i = 0; i < kMaxLinks; ++i) {
    const fs::path target = fs::read_symlink(path, error);
    if (error) return path;  // not a link
    path = path.parent_path() / target;
  }
  return path;
}

}  // namespace vitrail
