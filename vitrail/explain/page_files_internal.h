// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/base/embedded_file_internal.h"

namespace vitrail::explain {

// The files of page/, in the order of page.cmake: that of the scripts on the page.
std::span<const EmbeddedFile> learning_page_files();

}  // namespace vitrail::explain
