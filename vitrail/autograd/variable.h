// SPDX-License-Identifier: Apache-2.0
#pragma once
// The graph behind a tensor that needs gradients.
//
// A Tensor that takes part carries a Variable in its autograd slot.  A leaf (a parameter) has no producer; the result
// of an operation has the Node that made it.  The graph is owned from its end: dropping the loss frees it.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::autograd {

struct Variable;

// One operation that ran.  A node has one output; its backward maps the output's gradient to one gradient per input
// (undefined where an input needs none).  What it keeps for that must not lead back to its own output: a result is kept
// as result.detach().
struct Node {
  Node() = default;
  ~Node();  // frees a graph however deep without recursion
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  std::string name;
  std::vector<std::shared_ptr<Variable>> inputs;  // null where that input needs no gradient
  std::function<std::vector<Tensor>(const Tensor& grad)> backward;
};

struct Variable : AutogradSlot {
  bool requires_grad = false;
  Tensor grad;                     // leaves only: the accumulated gradient, undefined before the first backward
  std::shared_ptr<Node> producer;  // null for leaves

  // Records views and copies (views.cpp).
  void derived(const Tensor& source, Tensor& result) const override;
};

// Whether operations record on this thread.  On by default, but nothing is recorded unless an input needs a gradient.
bool grad_enabled();

// Sets that for the life of the object.
class GradMode {
 public:
  explicit GradMode(bool on);
  ~GradMode();
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;

 private:
  bool previous_;
};

// Nothing is recorded on this thread while one of these lives.
class NoGrad : public GradMode {
 public:
  NoGrad() : GradMode(false) {}
};

// The tensor's variable, or null.
std::shared_ptr<Variable> variable_of(const Tensor& tensor);

bool requires_grad(const Tensor& tensor);
void set_requires_grad(Tensor& tensor, bool value);  // makes it a leaf; floating dtypes only, else an Error
Tensor grad_of(const Tensor& leaf);                  // undefined when there is none
void clear_grad(const Tensor& leaf);

// True when an operation on these inputs has to be recorded.
bool recording(const std::vector<Tensor>& inputs);

// Hangs a node on `output`.  Call only when recording(inputs).
void record(Tensor& output, std::string name, const std::vector<Tensor>& inputs,
            std::function<std::vector<Tensor>(const Tensor& grad)> backward);

}  // namespace vitrail::autograd
