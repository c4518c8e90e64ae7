// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::quantize {

// Rows of what a layer reads, [n, in] one after the other.
struct InputRows {
  std::vector<float> values;
  std::vector<float> apart;  // what an error of the weight is multiplied by: values less what has the weight whole
};

// Divisors s [in] for the channels of a layer's input, with which its weight's columns are multiplied in turn, so that
// the product stays what it is while rounding both to 8 bits puts it off by the least.  Xiao et al. 2023
// ("SmoothQuant", eq. 4) take s = √(max |x| / max |w|); here that is where a search by gradients (Kingma & Ba 2015,
// "Adam") begins, of what rounding with each token's and each weight row's step is expected to add:
//   Σ_t (max x_t/s − min x_t/s)² · Σ_rc (w_rc s_c)²   +   Σ_r max_c |w_rc s_c|² · Σ_tc (d_tc/s_c)²
// over 12 · 255² and 12 · 127², d being the rows apart.
// weight: f32 [out, in].  A channel or a column of zeros keeps 1.
std::vector<float> smoothing_factors(const InputRows& rows, const Tensor& weight);

}  // namespace vitrail::quantize
