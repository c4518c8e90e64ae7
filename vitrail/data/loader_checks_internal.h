// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a loader's options make sense, alone and with its dataset; inside vitrail/data only.
#include "vitrail/data/loader.h"

namespace vitrail::data {

// Both throw Error naming the option that is out of its range.
void check(const LoaderOptions& options);
void check(const LoaderOptions& options, const std::vector<int64_t>& samples, const Dataset& dataset);

}  // namespace vitrail::data
