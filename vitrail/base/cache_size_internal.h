// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sizes of the processor's caches.
#include <cstddef>
#include <filesystem>

namespace vitrail {

// The largest cache that the kernel lists in `folder`, or 32 MiB if it lists none.
size_t largest_cache_bytes(const std::filesystem::path& folder);

// The last-level cache of the first processor.
size_t last_level_cache_bytes();

// The associativity of the first-level data cache, or 8 if the system does not tell.
int first_level_cache_ways();

}  // namespace vitrail
