// SPDX-License-Identifier: Apache-2.0
#pragma once
// Search for NaN and infinity in a tensor.
#include <cstdint>
#include <optional>

#include "vitrail/tensor/tensor.h"

namespace vitrail::weights {

// The row-major index of the first NaN or infinity of a contiguous tensor; none if there is none or the type is an
// integer.  One vectorisable pass over the exponent bits, limited by memory bandwidth.
std::optional<int64_t> first_non_finite(const Tensor& tensor);

}  // namespace vitrail::weights
