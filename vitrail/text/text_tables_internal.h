// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "vitrail/base/embedded_file_internal.h"

namespace vitrail::text {

// The files of tables/, which text_tables.cmake lists.
std::span<const EmbeddedFile> text_tables();

nlohmann::json text_table(std::string_view name);

}  // namespace vitrail::text
