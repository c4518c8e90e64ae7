// SPDX-License-Identifier: Apache-2.0
#pragma once
// Range checks of a loader's options, alone and against its dataset.
#include "vitrail/data/loader/loader.h"

namespace vitrail::data {

// Both throw Error naming the option that is out of its range.
void check(const LoaderOptions& options);
void check(const LoaderOptions& options, const std::vector<int64_t>& samples, const Dataset& dataset);

}  // namespace vitrail::data
