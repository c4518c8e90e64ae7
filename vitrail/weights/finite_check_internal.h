// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether all elements of a tensor are finite.
#include <cstdint>
#include <optional>

#include "vitrail/tensor/tensor.h"

namespace vitrail::weights {

// The index (row-major) of the first NaN or infinity of a contiguous tensor; nothing when there is none, or the type is
// an integer.  One pass over the exponent bits as integers, which the compiler vectorises: it reads at the speed of
// memory.
std::optional<int64_t> first_non_finite(const Tensor& tensor);

}  // namespace vitrail::weights
