// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "vitrail/text/text_tables_internal.h"

namespace vitrail::text {

nlohmann::json text_table(std::string_view name) {
  return nlohmann::json::parse(std::ranges::find(text_tables(), name, &EmbeddedFile::name)->text);
}

}  // namespace vitrail::text
