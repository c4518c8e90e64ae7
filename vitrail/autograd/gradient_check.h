// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::autograd {

struct GradientCheck {
  double worst = 0;      // the largest |numerical − analytic| / max(1, |numerical|, |analytic|)
  int input = -1;        // its input
  int64_t element = -1;  // its element of that input, row-major
  double numerical = 0, analytic = 0;
};

// Compares backward() with central differences in double precision.  The differentiated scalar is the sum of the
// elements of function(inputs), with fixed random weights.  inputs: f64 and contiguous; every element is changed by
// ±step.
GradientCheck check_gradients(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                              const std::vector<Tensor>& inputs, double step = 1e-5);

}  // namespace vitrail::autograd
