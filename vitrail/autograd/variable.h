// SPDX-License-Identifier: Apache-2.0
#pragma once
// The graph of operations for reverse-mode differentiation.
//
// A Tensor of the graph has a Variable in its autograd slot.  A leaf (a parameter) has no producer; the result of an
// operation has the operation's Node as its producer.  Results own the graph behind them, so destroying the loss frees
// it.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::autograd {

struct Variable;

// An operation that has run, with one output.  `backward` maps the output's gradient to one gradient per input
// (undefined for inputs that require none).  It must not capture its own output, which would be a cycle, but may
// capture output.detach().
struct Node {
  Node() = default;
  ~Node();  // frees the graph behind it without recursion
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  std::string name;
  std::vector<std::shared_ptr<Variable>> inputs;  // null for an input that requires no gradient
  std::function<std::vector<Tensor>(const Tensor& grad)> backward;
  std::vector<std::shared_ptr<Variable>> leaves;  // others than inputs, to whose gradients `backward` itself adds
};

struct Variable : AutogradSlot {
  bool requires_grad = false;
  bool retains_grad = false;       // results only: keeps its gradient as leaves do
  DType dtype = DType::f32;        // leaves and retain_grad(): of the tensor, and so of its gradient
  Tensor grad;                     // likewise: the accumulated gradient, undefined before the first backward
  std::shared_ptr<Node> producer;  // null for leaves

  // Records views and copies of a tensor (views.cpp).
  void derived(const Tensor& source, Tensor& result) const override;
};

// True if operations on this thread record their nodes.  They do by default, if an input requires a gradient.
bool grad_enabled();

// Sets grad_enabled() during the life of the object.
class GradMode {
 public:
  explicit GradMode(bool on);
  ~GradMode();
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;

 private:
  bool previous_;
};

// Disables recording on this thread during the life of the object.
class NoGrad : public GradMode {
 public:
  NoGrad() : GradMode(false) {}
};

// Collects the leaves that operations on this thread read while it exists, also through recorded results, and which
// require a gradient.  Each is listed once.
class LeavesRead {
 public:
  LeavesRead();
  ~LeavesRead();
  LeavesRead(const LeavesRead&) = delete;
  LeavesRead& operator=(const LeavesRead&) = delete;

  std::vector<std::shared_ptr<Variable>> leaves() const;
  void add(const std::vector<Tensor>& inputs);

 private:
  std::vector<std::shared_ptr<Variable>> read_;
  LeavesRead* previous_;
};

// The tensor's variable, or null.
std::shared_ptr<Variable> variable_of(const Tensor& tensor);

bool requires_grad(const Tensor& tensor);
void set_requires_grad(Tensor& tensor, bool value);  // makes it a leaf; floating dtypes only, else an Error
// Makes backward() keep the gradient of an operation's result too, for grad_of(); of a leaf it does anyway.  As
// torch.Tensor.retain_grad.  Throws Error for a tensor that requires no gradient.
void retain_grad(const Tensor& tensor);
Tensor grad_of(const Tensor& tensor);  // undefined if there is none
void clear_grad(const Tensor& tensor);

// True if an operation on these inputs must be recorded.  Every operation asks this about all inputs that have a
// gradient.
bool recording(const std::vector<Tensor>& inputs);

// Makes `output` the result of a new node.  Call only if recording(inputs).
void record(Tensor& output, std::string name, const std::vector<Tensor>& inputs,
            std::function<std::vector<Tensor>(const Tensor& grad)> backward);

}  // namespace vitrail::autograd
