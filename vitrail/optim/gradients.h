// SPDX-License-Identifier: Apache-2.0
#pragma once
// Global gradient norm, and gradient clipping by it (Pascanu et al. 2013, algorithm 1).
#include <vector>

#include "vitrail/optim/parameter_groups.h"

namespace vitrail::optim {

// Returns √Σg² over the gradients of all parameters; a parameter without a gradient counts as 0.  Sums in f64 over
// fixed chunks and adds these in order, so that the result does not depend on the number of threads.  For f32
// gradients, the norm is infinite or NaN exactly if a gradient element is.
double gradient_norm(const std::vector<Parameter>& parameters);

// Returns the factor by which to multiply gradients of this norm: min(1, max_norm / (norm + 1e-6)), as
// torch.nn.utils.clip_grad_norm_.  Returns 1 if max_norm is 0 (no clipping) or the norm is not finite.  Throws Error
// for a negative max_norm.
double clip_factor(double norm, double max_norm);

// Scales the gradients in place if their norm exceeds max_norm, and returns the norm before.  To save this pass over
// the gradients, give clip_factor() to Optimizer::step().
double clip_gradients(const std::vector<Parameter>& parameters, double max_norm);

// The same for each parameter's gradient by itself, as DINO does; returns nothing.
void clip_each_gradient(const std::vector<Parameter>& parameters, double max_norm);

}  // namespace vitrail::optim
