// SPDX-License-Identifier: Apache-2.0
#include "vitrail/autograd/variable.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "vitrail/base/error.h"

namespace vitrail::autograd {
namespace {

thread_local bool enabled = true;
thread_local LeavesRead* active_reader = nullptr;

// Appends the leaves behind `variable` that `seen` does not contain.
void append_leaves(const std::shared_ptr<Variable>& variable, std::unordered_set<Variable*>& seen,
                   std::vector<std::shared_ptr<Variable>>& leaves) {
  std::vector<std::shared_ptr<Variable>> stack{variable};
  while (!stack.empty()) {
    const std::shared_ptr<Variable> next = std::move(stack.back());
    stack.pop_back();
    if (!next || !seen.insert(next.get()).second) continue;
    if (!next->producer) {
      leaves.push_back(next);
    } else {
      stack.insert(stack.end(), next->producer->inputs.begin(), next->producer->inputs.end());
    }
  }
}

}  // namespace

LeavesRead::LeavesRead() : previous_(std::exchange(active_reader, this)) {}
LeavesRead::~LeavesRead() { active_reader = previous_; }

void LeavesRead::add(const std::vector<Tensor>& inputs) {
  for (const Tensor& input : inputs) {
    if (requires_grad(input)) read_.push_back(variable_of(input));
  }
}

std::vector<std::shared_ptr<Variable>> LeavesRead::leaves() const {
  std::vector<std::shared_ptr<Variable>> result;
  std::unordered_set<Variable*> seen;
  for (const std::shared_ptr<Variable>& variable : read_) append_leaves(variable, seen, result);
  return result;
}

// Frees the nodes behind this one in a loop.  Backward functions capture only inputs of their node, which the list
// keeps alive, so freeing a function does not recurse.
Node::~Node() {
  std::vector<std::shared_ptr<Variable>> unused = std::move(inputs);
  backward = nullptr;
  while (!unused.empty()) {
    const std::shared_ptr<Variable> variable = std::move(unused.back());
    unused.pop_back();
    if (!variable || variable.use_count() > 1) continue;
    const std::shared_ptr<Node> producer = std::move(variable->producer);
    if (!producer || producer.use_count() > 1) continue;
    for (auto& input : producer->inputs) unused.push_back(std::move(input));
    producer->backward = nullptr;
  }
}

bool grad_enabled() { return enabled; }
GradMode::GradMode(bool on) : previous_(enabled) { enabled = on; }
GradMode::~GradMode() { enabled = previous_; }

std::shared_ptr<Variable> variable_of(const Tensor& tensor) {
  return std::static_pointer_cast<Variable>(tensor.autograd());
}

bool requires_grad(const Tensor& tensor) {
  const auto* variable = static_cast<const Variable*>(tensor.autograd().get());
  return variable != nullptr && variable->requires_grad;
}

void set_requires_grad(Tensor& tensor, bool value) {
  if (value && !is_floating(tensor.dtype())) {
    throw Error("requires_grad", "a floating dtype", name_of(tensor.dtype()));
  }
  auto variable = std::make_shared<Variable>();
  variable->requires_grad = value;
  variable->dtype = tensor.dtype();
  tensor.set_autograd(std::move(variable));
}

void retain_grad(const Tensor& tensor) {
  if (!requires_grad(tensor)) throw Error("retain_grad", "a tensor that requires a gradient", "one that does not");
  const auto variable = variable_of(tensor);
  variable->retains_grad = true;
  variable->dtype = tensor.dtype();
}

Tensor grad_of(const Tensor& tensor) {
  const auto variable = variable_of(tensor);
  return variable ? variable->grad : Tensor();
}

void clear_grad(const Tensor& tensor) {
  if (const auto variable = variable_of(tensor)) variable->grad = Tensor();
}

bool recording(const std::vector<Tensor>& inputs) {
  if (active_reader != nullptr) active_reader->add(inputs);
  return enabled && std::any_of(inputs.begin(), inputs.end(), requires_grad);
}

void record(Tensor& output, std::string name, const std::vector<Tensor>& inputs,
            std::function<std::vector<Tensor>(const Tensor& grad)> backward) {
  auto node = std::make_shared<Node>();
  node->name = std::move(name);
  for (const Tensor& input : inputs) node->inputs.push_back(requires_grad(input) ? variable_of(input) : nullptr);
  node->backward = std::move(backward);
  auto variable = std::make_shared<Variable>();
  variable->requires_grad = true;
  variable->producer = std::move(node);
  output.set_autograd(std::move(variable));
}

}  // namespace vitrail::autograd
