// SPDX-License-Identifier: Apache-2.0
#include "vitrail/autograd/engine.h"

#include <chrono>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/kernels/rowwise/elementwise.h"

namespace vitrail::autograd {
namespace {

// True if no other tensor shares the memory, so that it may be added to in place.
bool owned(const Tensor& tensor) { return tensor.storage().use_count() == 1 && tensor.is_contiguous(); }

void accumulate(const Tensor& into, const Tensor& from) {
  dispatch_dtype(into.dtype(), [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_same_v<T, float>) {
      kernels::add(into.data<float>(), from.data<float>(), into.data<float>(), into.numel());
    } else if constexpr (std::is_same_v<T, double> || std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>) {
      using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;
      T* const to = into.data<T>();
      const T* const addend = from.data<T>();
      for (int64_t i = 0; i < into.numel(); ++i) {
        to[i] = convert_element<T>(convert_element<Sum>(to[i]) + convert_element<Sum>(addend[i]));
      }
    } else {
      throw Error("backward", "floating gradients", name_of(into.dtype()));
    }
  });
}

// into + from, of the same shape.  An undefined `into` counts as 0.
Tensor sum(Tensor into, Tensor from) {
  if (!into.defined()) return from;
  if (!(into.shape() == from.shape())) throw Error("backward", into.shape().to_string(), from.shape().to_string());
  if (into.dtype() != from.dtype()) from = from.to(into.dtype());
  if (!owned(into) && owned(from)) std::swap(into, from);
  if (!owned(into)) into = into.clone();
  accumulate(into, from.contiguous());
  return into;
}

// The variables behind `root`, each after those that it was computed from.  Iterative, because graphs are deep.
std::vector<std::shared_ptr<Variable>> topological_order(const std::shared_ptr<Variable>& root) {
  std::vector<std::shared_ptr<Variable>> order;
  std::unordered_set<Variable*> seen{root.get()};
  std::vector<std::pair<std::shared_ptr<Variable>, size_t>> stack{{root, 0}};
  while (!stack.empty()) {
    auto& [variable, next] = stack.back();
    if (!variable->producer || next == variable->producer->inputs.size()) {
      order.push_back(variable);
      stack.pop_back();
      continue;
    }
    const std::shared_ptr<Variable> input = variable->producer->inputs[next++];
    if (input && seen.insert(input.get()).second) stack.emplace_back(input, 0);
  }
  return order;
}

// A variable owns the memory of its gradient, because optimisers and reductions change it in place.  The gradient gets
// the tensor's dtype: in mixed precision that of an fp32 parameter may arrive in bf16.
void add_to_grad(Variable& variable, Tensor grad) {
  if (grad.dtype() != variable.dtype) grad = grad.to(variable.dtype);
  variable.grad = sum(std::move(variable.grad), std::move(grad));
  if (!owned(variable.grad)) variable.grad = variable.grad.clone();
}

// Reports each leaf after the last step of a backward pass that adds to its gradient.
class FinalLeaves {
 public:
  FinalLeaves(const std::vector<std::shared_ptr<Variable>>& order, const std::function<void(Variable&)>& on_leaf)
      : on_leaf_(on_leaf) {
    if (!on_leaf_) return;
    for (const auto& variable : order) {
      for (Variable* leaf : changed_by(*variable)) ++steps_left_[leaf];
    }
  }

  void step_done(Variable& variable) {
    if (!on_leaf_) return;
    for (Variable* leaf : changed_by(variable)) {
      if (--steps_left_[leaf] == 0 && leaf->grad.defined()) on_leaf_(*leaf);
    }
  }

 private:
  // The leaves to whose gradients the step of `variable` adds.
  static std::vector<Variable*> changed_by(Variable& variable) {
    if (!variable.producer) return {&variable};
    std::vector<Variable*> leaves;
    for (const auto& leaf : variable.producer->leaves) leaves.push_back(leaf.get());
    return leaves;
  }

  const std::function<void(Variable&)>& on_leaf_;
  std::unordered_map<Variable*, int64_t> steps_left_;
};

std::vector<Tensor> timed_backward(const Node& node, const Tensor& grad_output, const BackwardOptions& options) {
  if (!options.on_node) return node.backward(grad_output);
  const auto start = std::chrono::steady_clock::now();
  std::vector<Tensor> grads = node.backward(grad_output);
  options.on_node(node.name, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return grads;
}

using PendingGradients = std::unordered_map<Variable*, Tensor>;

// Runs a node and adds to the pending gradients of its inputs.
void run_node(Node& node, Tensor grad_output, const BackwardOptions& options, PendingGradients& pending) {
  if (!node.backward) throw Error("backward", "a graph that has not run backward (or keep_graph)", "one that has");
  std::vector<Tensor> grads = timed_backward(node, grad_output, options);
  if (!options.keep_graph) node.backward = nullptr;
  grad_output = Tensor();  // before the sums, so that a gradient that shares its memory can be added to in place
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.inputs[i] || !grads[i].defined()) continue;
    Tensor& grad_input = pending[node.inputs[i].get()];
    grad_input = sum(std::move(grad_input), std::move(grads[i]));
  }
}

void check(const Tensor& root, const Tensor& grad) {
  if (!requires_grad(root)) {
    throw Error("backward", "a tensor that requires a gradient", "one that does not");
  }
  if (!grad.defined() && root.numel() != 1) {
    throw Error("backward", "a loss of one element, or a gradient of it", "shape " + root.shape().to_string());
  }
  if (grad.defined() && !(grad.shape() == root.shape())) {
    throw Error("backward", "a gradient of shape " + root.shape().to_string(), grad.shape().to_string());
  }
}

// Runs each node after all its consumers.  on_gradient gets each variable behind `root` with its final gradient.
template <class OnGradient>
void run_graph(const Tensor& root, const Tensor& grad, const BackwardOptions& options, const OnGradient& on_gradient) {
  check(root, grad);
  const NoGrad scope;
  std::vector<std::shared_ptr<Variable>> order = topological_order(variable_of(root));
  FinalLeaves final_leaves(order, options.on_leaf);
  PendingGradients pending;
  pending[order.back().get()] = grad.defined() ? grad : Tensor::full(root.shape(), 1.0, root.dtype());
  while (!order.empty()) {
    const std::shared_ptr<Variable> variable = std::move(order.back());
    order.pop_back();
    if (auto found = pending.extract(variable.get())) {
      Tensor grad_output = std::move(found.mapped());
      on_gradient(*variable, grad_output);
      if (variable->producer) run_node(*variable->producer, std::move(grad_output), options, pending);
    }
    final_leaves.step_done(*variable);
  }
}

}  // namespace

void backward(const Tensor& root, const Tensor& grad, const BackwardOptions& options) {
  run_graph(root, grad, options, [](Variable& variable, Tensor& final_grad) {
    if (!variable.producer) {
      add_to_grad(variable, std::move(final_grad));
    } else if (variable.retains_grad) {
      add_to_grad(variable, final_grad);  // a copy: the producer reads it next
    }
  });
}

std::vector<Tensor> gradients(const Tensor& root, const std::vector<Tensor>& tensors, const Tensor& grad) {
  std::unordered_map<const Variable*, Tensor> found;
  for (const Tensor& tensor : tensors) found[variable_of(tensor).get()];
  run_graph(root, grad, {}, [&](Variable& variable, const Tensor& final_grad) {
    if (const auto wanted = found.find(&variable); wanted != found.end()) wanted->second = final_grad;
  });
  std::vector<Tensor> results;
  for (const Tensor& tensor : tensors) {
    const Tensor& result = found[variable_of(tensor).get()];
    results.push_back(result.defined() ? result.to(tensor.dtype()) : result);
  }
  return results;
}

}  // namespace vitrail::autograd
