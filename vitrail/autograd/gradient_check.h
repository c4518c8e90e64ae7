// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::autograd {

struct GradientCheck {
  double worst = 0;  // largest |numerical − analytic| / max(1, |numerical|, |analytic|)
  int input = -1;    // where it was: which input, which element, both values
  int64_t element = -1;
  double numerical = 0, analytic = 0;
};

// Compares backward() with central differences in double precision.  `function` maps the inputs to one tensor of any
// shape; its elements are weighted by fixed random numbers and summed.  All inputs must be f64 and contiguous; each
// element of each is moved by ±step.
GradientCheck check_gradients(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                              const std::vector<Tensor>& inputs, double step = 1e-5);

}  // namespace vitrail::autograd
