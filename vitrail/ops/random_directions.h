// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// Directions [dim, count] for sliced losses (sigreg.h, visreg.h): columns of length 1, uniform on the sphere.  A
// function of (seed, step), so that a resumed run and all processes of a run draw the same ones.  f32.
Tensor random_directions(int64_t dim, int64_t count, uint64_t seed, uint64_t step);

}  // namespace vitrail::ops
