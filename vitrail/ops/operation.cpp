// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/operation.h"

#include <algorithm>

#include "vitrail/autograd/variable.h"
#include "vitrail/ops/recorder.h"

namespace vitrail::ops {
namespace {

template <class To>
std::vector<View<To>> views_of(const Tensors& tensors) {
  std::vector<View<To>> views;
  for (const Tensor& tensor : tensors) {
    views.push_back({tensor.defined() ? reinterpret_cast<To*>(tensor.raw()) : nullptr, &tensor});
  }
  return views;
}

template <class T>
void run(const KernelOf<T>& kernel, const Tensors& in, const Tensors& out) {
  kernel(views_of<const T>(in), views_of<T>(out));
}

void run(const Kernel& kernel, DType dtype, const Tensors& in, const Tensors& out) {
  if (dtype == DType::f64) {
    run(kernel.f64, in, out);
  } else {
    run(kernel.f32, in, out);
  }
}

}  // namespace

bool symbolic(std::span<const Tensor> inputs) {
  return std::ranges::any_of(inputs, [](const Tensor& input) { return input.defined() && input.is_meta(); });
}

Tensors recorded(Operation operation, const Tensors& inputs) {
  const DType dtype = inputs[operation.integer_inputs].dtype();
  Tensors in, out{Tensor::empty(operation.shape, dtype, Device::meta)};
  for (const Tensor& input : inputs) {
    const bool is_value = input.defined() && in.size() >= operation.integer_inputs;
    in.push_back(is_value ? operation.layout(input) : input);
  }
  for (const FurtherResult& result : operation.further_results) {
    out.push_back(Tensor::empty(result.shape, result.dtype.value_or(dtype), Device::meta));
  }
  record({std::make_shared<const Operation>(std::move(operation)), std::move(in), out});
  return out;
}

Tensors computed(const Operation& operation, const Tensors& inputs) {
  const Tensor& first = inputs[operation.integer_inputs];
  const DType wanted = compute_dtype(first, operation.name), dtype = operation.kernel.f64 ? wanted : DType::f32;
  Tensors in, out{Tensor::empty(operation.shape, dtype)};
  for (const Tensor& input : inputs) {
    in.push_back(in.size() < operation.integer_inputs ? input.to(DType::i64).contiguous() : prepared(input, dtype));
  }
  for (const FurtherResult& result : operation.further_results) out.push_back(Tensor::empty(result.shape, dtype));
  run(operation.kernel, dtype, in, out);
  Tensors results{out[0].to(first.dtype())};
  for (size_t i = 1; i < out.size(); ++i) {
    results.push_back(out[i].to(operation.further_results[i - 1].dtype.value_or(first.dtype())));
  }
  if (operation.gradient && autograd::recording(inputs)) {
    autograd::record(results[0], operation.name, inputs, operation.gradient(in, out));
  }
  return results;
}

Tensors apply_all(Operation operation, const Tensors& inputs) {
  return symbolic(inputs) ? recorded(std::move(operation), inputs) : computed(operation, inputs);
}

Tensor apply(Operation operation, const Tensors& inputs) { return apply_all(std::move(operation), inputs)[0]; }

Backward backward_kernel(const Tensors& in, Tensors saved, Kernel kernel) {
  std::vector<std::optional<Shape>> shapes;
  for (const Tensor& input : in) {
    const bool differentiable = input.defined() && is_floating(input.dtype());
    shapes.push_back(differentiable ? std::optional(input.shape()) : std::nullopt);
  }
  const auto floating = std::ranges::find_if(in, [](const Tensor& x) { return x.defined() && is_floating(x.dtype()); });
  return [shapes, saved = std::move(saved), kernel = std::move(kernel), dtype = floating->dtype()](const Tensor& grad) {
    Tensors from{prepared(grad, dtype)}, grads;
    from.insert(from.end(), saved.begin(), saved.end());
    for (const auto& shape : shapes) grads.push_back(shape ? Tensor::empty(*shape, dtype) : Tensor());
    run(kernel, dtype, from, grads);
    return grads;
  };
}

}  // namespace vitrail::ops
