// SPDX-License-Identifier: Apache-2.0
#pragma once
// A weight's row as the int8 product multiplies it.
#include <cstdint>

namespace vitrail::kernels {

// No number of a weight is larger.
constexpr int kMaxInt8 = 127;

// Processors without VNNI are fastest where no sum of two neighbours (0 and 1, 2 and 3, …) is larger: they sum two
// products with activations from 0 to 255 in 16 bits, and 255 · 128 is what has room there.  Neighbours of unlike sign
// never add up.
constexpr int kMaxSaturatingPair = 128;

// What neighbours may sum up to with the int8 product at its fastest under the instruction set that is active now.
int max_int8_pair();

// row [in] → whole numbers of at most kMaxInt8, and the step: row ≈ step · numbers.  A row that is step · such numbers
// already, with any step, is found to be so and nothing is rounded; else the heaviest number or sum of neighbours
// becomes 127 (rounding may add one to a sum), on every processor, so that a model gives the same whole numbers on all.
// Not finite: the step is NaN.
float quantize_weight_row(const float* row, int64_t in, int8_t* numbers);

}  // namespace vitrail::kernels
