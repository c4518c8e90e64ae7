// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files of JSON that cmake/embed_json.cmake embeds at build time.
#include <span>
#include <string_view>

namespace vitrail {

struct EmbeddedJson {
  std::string_view name;  // the file's name without .json
  std::string_view text;
};

}  // namespace vitrail
