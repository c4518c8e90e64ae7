// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tensors as text: statistics, values, and slices in Python syntax.
#include <string>

#include "vitrail/tensor/tensor.h"

namespace vitrail::app {

// "NAME[0, :, :3, 1]", split into the name and the slice between the brackets.
struct SliceRequest {
  std::string name, slice;  // slice empty: all of the tensor
};
SliceRequest parse_slice_request(const std::string& text);

// The view that a Python slice gives: integers (which drop the axis), a:b, :, and one "..."; negative indices count
// from the end.  Throws Error if an index does not fit the shape.
Tensor sliced(const Tensor& tensor, const std::string& slice);

// Nested brackets, four decimals (small or large values with an exponent); long axes are cut to their first and last
// three, as NumPy does.
std::string values_text(const Tensor& tensor);

// Statistics of the finite values, because a mask puts −infinity among scores.
struct Statistics {
  double mean = 0, standard_deviation = 0;
  std::string first;  // the first five values
};
Statistics statistics_of(const Tensor& tensor);

}  // namespace vitrail::app
