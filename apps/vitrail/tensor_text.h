// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tensors as text: statistics, first values, and slices named as Python writes them.
#include <string>

#include "vitrail/tensor/tensor.h"

namespace vitrail::app {

// "NAME[0, :, :3, 1]" split into the name and what is between the brackets.
struct SliceRequest {
  std::string name, slice;  // slice empty: the whole tensor
};
SliceRequest parse_slice_request(const std::string& text);

// A view by Python's rules: integers (which drop the axis), a:b, :, and one "..."; negative indices count from the end.
// Throws Error that names the part which does not fit the tensor's shape.
Tensor sliced(const Tensor& tensor, const std::string& slice);

// Nested brackets, four decimals; long axes are cut to their first and last three, as NumPy does.
std::string values_text(const Tensor& tensor);

struct Statistics {
  double mean = 0, deviation = 0;
  std::string first;  // the first five values
};
Statistics statistics_of(const Tensor& tensor);

}  // namespace vitrail::app
