#pragma once
#include "vitrail/tensor/tensor.h"

namespace vitrail::autograd {

// Runs the graph behind `root` backwards, each node after all its consumers, and adds to the gradients of the leaves.
// `grad` is the gradient of root itself; undefined: ones (root must then have one element, as a loss has).
// Gradients of intermediate results are freed as they are used.
void backward(const Tensor& root, const Tensor& grad = Tensor());

}  // namespace vitrail::autograd
