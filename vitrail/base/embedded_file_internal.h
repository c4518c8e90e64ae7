// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files that cmake/embed_files.cmake embeds at build time.
#include <span>
#include <string_view>

namespace vitrail {

struct EmbeddedFile {
  std::string_view name;  // a file of JSON has its name without .json
  std::string_view text;
};

}  // namespace vitrail
