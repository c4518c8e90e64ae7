// SPDX-License-Identifier: Apache-2.0
#pragma once
// The norm of all gradients together, and clipping by it.
#include <vector>

#include "vitrail/optim/parameter_groups.h"

namespace vitrail::optim {

// √Σg² over the gradients of all parameters (those without one count as 0).  Sums are kept in f64 over fixed chunks
// that are added in order: the same bits on any number of threads.  Infinite or NaN exactly when a gradient in f32 is.
double gradient_norm(const std::vector<Parameter>& parameters);

// What gradients of this norm are to be multiplied by: min(1, max_norm / (norm + 1e-6)), as PyTorch's clip_grad_norm_;
// 1 when max_norm is 0 (no clipping) or the norm is not finite (nothing sensible can be scaled then).
double clip_factor(double norm, double max_norm);

// Scales the gradients in place where their norm exceeds max_norm and returns the norm before.  Optimizer::step() takes
// the factor instead and saves the pass.
double clip_gradients(const std::vector<Parameter>& parameters, double max_norm);

// The first parameter, in order, with a gradient that holds an infinity or NaN; empty when there is none.
std::string first_non_finite_gradient(const std::vector<Parameter>& parameters);

}  // namespace vitrail::optim
