// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/base/embedded_file_internal.h"

namespace vitrail::weights {

// The built-in key maps: the files of key_maps/ in the order of detection, which key_maps.cmake lists.
std::span<const EmbeddedFile> builtin_key_maps();

}  // namespace vitrail::weights
