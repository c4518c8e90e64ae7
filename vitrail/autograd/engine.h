// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

#include "vitrail/autograd/variable.h"

namespace vitrail::autograd {

struct BackwardOptions {
  bool keep_graph = false;  // if false, nodes free their saved tensors as they run, and the graph can run only once
  // Called once with a leaf's variable when its gradient is final, on the thread that runs backward().  The leaves of
  // late layers come first.
  std::function<void(Variable&)> on_leaf{};
  // Called after each node with the operation's name and the duration of its backward in seconds, for profiles.
  std::function<void(const std::string&, double)> on_node{};
};

// Reverse-mode differentiation from `root`: runs each node after all its consumers, and adds to the gradients of the
// leaves, and of the results that retain theirs (retain_grad()).  grad: the gradient of root; undefined means 1, for a
// root with one element, such as a loss. Gradients of other results are freed when they have been used.  Throws Error
// if root requires no gradient, or if its graph has run before.
void backward(const Tensor& root, const Tensor& grad = Tensor(), const BackwardOptions& options = {});

// The gradients of `root` with respect to `tensors`, leaves or results of operations, as torch.autograd.grad.  Nothing
// is added to the gradients of leaves, except by checkpoint().  Undefined for a tensor that root does not depend on.
// Frees the graph; throws Error as backward().
std::vector<Tensor> gradients(const Tensor& root, const std::vector<Tensor>& tensors, const Tensor& grad = Tensor());

}  // namespace vitrail::autograd
