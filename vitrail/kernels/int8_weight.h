#pragma once
// A weight's row as the int8 product multiplies it.
#include <cstdint>

namespace vitrail::kernels {

// No number of a weight is larger, nor is the sum of two neighbours (0 and 1, 2 and 3, …): processors without VNNI sum
// two products with activations from 0 to 255 in 16 bits, and 255 · 128 is what has room there.  Neighbours of unlike
// sign never add up.  The limits hold everywhere, so that a model gives the same whole numbers on every processor.
constexpr int kMostInt8 = 127, kMostInt8Pair = 128;

// row [in] → whole numbers within these limits, and the step: row ≈ step · numbers.  A row that is step · such numbers
// already, with any step, is found to be so and nothing is rounded; else the heaviest number or sum becomes 127
// (rounding may add one to a sum).  Not finite: the step is NaN.
float weight_numbers(const float* row, int64_t in, int8_t* numbers);

}  // namespace vitrail::kernels
