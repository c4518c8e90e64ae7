// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::quantize {

// ‖got − want‖ / ‖want‖ over all tensors, f32.
double relative_l2_error(const std::vector<Tensor>& got, const std::vector<Tensor>& want);

}  // namespace vitrail::quantize
