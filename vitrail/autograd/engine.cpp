#include "vitrail/autograd/engine.h"

#include <unordered_map>
#include <unordered_set>

#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"

namespace vitrail::autograd {
namespace {

// into += from; both have one shape and dtype.  `into` may be shared with a node, so the sum is a new tensor.
Tensor sum(const Tensor& into, const Tensor& from) {
  if (!into.defined()) return from;
  if (!(into.shape() == from.shape())) throw Error("backward", into.shape().to_string(), from.shape().to_string());
  Tensor result = into.clone();
  const Tensor other = from.contiguous().to(result.dtype());
  dispatch_dtype(result.dtype(), [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_floating_point_v<T>) {
      for (int64_t i = 0; i < result.numel(); ++i) result.data<T>()[i] += other.data<T>()[i];
    } else {
      throw Error("backward", "gradients in f32 or f64", name_of(result.dtype()));
    }
  });
  return result;
}

// Interior variables so that each comes after the ones it was computed from.  Iterative: graphs are deep.
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

}  // namespace

void backward(const Tensor& root, const Tensor& grad) {
  const auto variable = variable_of(root);
  if (!variable || !variable->requires_grad) {
    throw Error("backward", "a tensor that depends on a parameter", "one that needs no gradient");
  }
  if (!grad.defined() && root.numel() != 1) {
    throw Error("backward", "a loss of one element, or a gradient of it", "shape " + root.shape().to_string());
  }
  if (grad.defined() && !(grad.shape() == root.shape())) {
    throw Error("backward", "a gradient of shape " + root.shape().to_string(), grad.shape().to_string());
  }
  const NoGrad scope;
  std::unordered_map<Variable*, Tensor> pending;
  // A copy: the gradient of an addition is the incoming one itself, which must not become a leaf's.
  pending[variable.get()] = grad.defined() ? grad.clone() : Tensor::full(root.shape(), 1.0, root.dtype());
  const auto order = topological_order(variable);
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const auto found = pending.find(it->get());
    if (found == pending.end()) continue;
    const Tensor at_output = std::move(found->second);
    pending.erase(found);
    if (!(*it)->producer) {
      (*it)->grad = sum((*it)->grad, at_output);
      continue;
    }
    const Node& node = *(*it)->producer;
    const std::vector<Tensor> grads = node.backward(at_output);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.inputs[i] || !grads[i].defined()) continue;
      Tensor& slot = pending[node.inputs[i].get()];
      slot = sum(slot, grads[i]);
    }
  }
}

}  // namespace vitrail::autograd
