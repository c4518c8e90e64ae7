// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

#include "vitrail/autograd/variable.h"

namespace vitrail::autograd {

struct BackwardOptions {
  bool keep_graph = false;  // otherwise what the nodes keep is freed as they are done, and the graph runs once
  // Called when a leaf's gradient is final, with the leaf's variable, in the order in which they become so: late layers
  // first.  On the thread that runs backward().
  std::function<void(Variable&)> on_leaf{};
  // Called after each node with its operation's name and the seconds that its backward took; for profiles.
  std::function<void(const std::string&, double)> on_node{};
};

// Runs the graph behind `root` backwards, each node after all its consumers, and adds to the gradients of the leaves.
// `grad` is the gradient of root itself; undefined: ones (root must then have one element, as a loss has).
// Gradients of intermediate results are freed as they are used.  Throws Error when root needs no gradient, or when its
// graph has run before.
void backward(const Tensor& root, const Tensor& grad = Tensor(), const BackwardOptions& options = {});

// For a node's own backward: runs the graph behind `root` with the options of the pass that is under way.  `input` is
// the inner graph's beginning, not a leaf of the outer one: on_leaf does not hear of it.
void backward_within(const Tensor& root, const Tensor& grad, const Variable* input);

}  // namespace vitrail::autograd
