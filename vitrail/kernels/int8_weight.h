#pragma once
// A weight's row as the int8 product multiplies it.
#include <cstdint>

namespace vitrail::kernels {

// No number of a weight is larger, nor are two neighbours (0 and 1, 2 and 3, …) together: processors without VNNI sum
// two products with an activation of up to 255 in 16 bits, and 255 · 128 is what has room there.  The limits hold
// everywhere, so that a model gives the same whole numbers on every processor.
constexpr int kMostInt8 = 127, kMostInt8Pair = 128;

// row [in] → whole numbers within these limits, and the step: row ≈ step · numbers.  A row that is step · such numbers
// already, with any step, is found to be so and nothing is rounded; else the heaviest pair becomes 127 (rounding may
// add one).  Not finite: the step is NaN.
float weight_numbers(const float* row, int64_t in, int8_t* numbers);

}  // namespace vitrail::kernels
