// SPDX-License-Identifier: Apache-2.0
#pragma once
// An in-memory cache of decoded images.
#include <cstdint>
#include <memory>

#include "vitrail/data/datasets/dataset.h"

namespace vitrail::data {

// The same dataset with its images kept in memory after their first decoding, up to `limit_bytes` of pixels; images
// beyond the limit are decoded each time.  limit_bytes ≤ 0: the dataset itself.  Loaders that use the same object share
// the cache.  Thread-safe.
std::shared_ptr<const Dataset> cache_decoded(std::shared_ptr<const Dataset> dataset, int64_t limit_bytes);

}  // namespace vitrail::data
