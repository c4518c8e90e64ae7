// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/base/embedded_file_internal.h"

namespace vitrail::serve {

// The files of page/.
std::span<const EmbeddedFile> page_files();

}  // namespace vitrail::serve
