// SPDX-License-Identifier: Apache-2.0
#pragma once
// The size of the processor's last-level cache.
#include <cstddef>
#include <filesystem>

namespace vitrail {

// The largest cache that the kernel lists in `folder`, or 32 MiB if it lists none.
size_t largest_cache_bytes(const std::filesystem::path& folder);

// The last-level cache of the first processor.
size_t last_level_cache_bytes();

}  // namespace vitrail
