// SPDX-License-Identifier: Apache-2.0
#include "vitrail/infer/function_session.h"

#include <map>
#include <mutex>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/infer/executor_internal.h"

namespace vitrail::infer {
namespace {

std::vector<std::string> names_of(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const nn::NamedTensor& item : tensors) names.push_back(item.name);
  return names;
}

std::string joined(const std::vector<std::string>& names) { return names.empty() ? "none" : join(names); }

PackedWeights::Exceptions exceptions(const nn::Module& module, const FunctionOptions& options) {
  PackedWeights::Exceptions result;
  for (const std::string& layer : options.int8_layers)
    result[module.parameter(layer + ".weight").storage().get()] = kernels::Precision::int8;
  if (options.precision != kernels::Precision::int8) return result;
  for (const std::string& layer : options.excluded_layers) {
    result[module.parameter(layer + ".weight").storage().get()] = options.excluded_precision;
  }
  return result;
}

PackedWeights::Retained retained(const nn::Module& module, const FunctionOptions& options) {
  PackedWeights::Retained result;
  for (const std::string& layer : options.retained_layers) {
    result.insert(module.parameter(layer + ".weight").storage().get());
  }
  if (!options.retain_all) return result;
  for (const nn::NamedTensor& parameter : module.named_parameters()) result.insert(parameter.tensor.storage().get());
  return result;
}

std::vector<Tensor> converted(const NamedTensors& inputs) {
  std::vector<Tensor> tensors;
  for (const nn::NamedTensor& input : inputs) {
    const DType dtype = is_floating(input.tensor.dtype()) ? DType::f32 : DType::i64;
    tensors.push_back(input.tensor.to(dtype).contiguous());
  }
  return tensors;
}

std::vector<TensorSpec> specs_of(const std::vector<Tensor>& tensors) {
  std::vector<TensorSpec> specs;
  for (const Tensor& tensor : tensors) specs.push_back({tensor.dtype(), tensor.shape()});
  return specs;
}

}  // namespace

const Tensor& find_tensor(const NamedTensors& tensors, const std::string& name) {
  for (const nn::NamedTensor& item : tensors) {
    if (item.name == name) return item.tensor;
  }
  throw Error("tensors", "a tensor named " + name, joined(names_of(tensors)));
}

struct FunctionSession::Impl {
  Function forward;
  mutable std::mutex mutex;
  // The first call that compiles fixes the names, so that later calls read them without the lock.
  bool compiled = false;
  std::vector<std::string> input_names, output_names;
  std::unique_ptr<Executor> executor;

  std::vector<Tensor> trace(const std::vector<Tensor>& inputs) {
    NamedTensors named;
    for (size_t i = 0; i < inputs.size(); ++i) named.push_back({input_names[i], inputs[i]});
    std::vector<Tensor> outputs;
    std::vector<std::string> names;
    for (nn::NamedTensor& output : forward(named)) {
      names.push_back(output.name);
      outputs.push_back(output.tensor);
    }
    if (!compiled) output_names = names;
    if (names != output_names) throw Error("session", "outputs " + joined(output_names), joined(names));
    return outputs;
  }

  std::shared_ptr<const Plan> plan(const NamedTensors& inputs, const std::vector<Tensor>& tensors) {
    const std::lock_guard lock(mutex);
    if (inputs.empty() || inputs.size() > Frame::kMaxInputs) {
      throw Error("session", str("1 to ", Frame::kMaxInputs, " inputs"), str(inputs.size()));
    }
    const std::vector<std::string> names = names_of(inputs);
    if (!compiled) input_names = names;
    if (names != input_names) {
      throw Error("session", "inputs " + joined(input_names) + ", in this order as in the first call", joined(names));
    }
    auto plan = executor->plan({}, specs_of(tensors));
    compiled = true;
    return plan;
  }
};

FunctionSession::FunctionSession(nn::Module& module, Function forward, const FunctionOptions& options)
    : impl_(std::make_unique<Impl>()) {
  module.eval();
  impl_->forward = std::move(forward);
  const bool int8 = options.precision == kernels::Precision::int8;
  impl_->executor = std::make_unique<Executor>(
      [impl = impl_.get()](const Variant&, const std::vector<Tensor>& inputs) { return impl->trace(inputs); },
      PackedWeights(options.precision, exceptions(module, options), retained(module, options)),
      ExecutorOptions{.threads = options.threads,
                      .split_batch = options.split_batch,
                      .attention = int8 ? options.excluded_precision : options.precision});
}

FunctionSession::~FunctionSession() = default;

NamedTensors FunctionSession::run(const NamedTensors& inputs) const {
  const std::vector<Tensor> tensors = converted(inputs);
  const auto plan = impl_->plan(inputs, tensors);
  std::vector<Tensor> results = impl_->executor->run(*plan, tensors);
  NamedTensors named;
  for (size_t i = 0; i < results.size(); ++i) named.push_back({impl_->output_names[i], results[i]});
  return named;
}

void FunctionSession::run_into(const NamedTensors& inputs, const std::vector<Tensor>& results) const {
  const std::vector<Tensor> tensors = converted(inputs);
  impl_->executor->run_into(*impl_->plan(inputs, tensors), tensors, results);
}

std::string FunctionSession::listing(const NamedTensors& inputs) const {
  return impl_->plan(inputs, converted(inputs))->largest_part().program->listing();
}

size_t FunctionSession::packed_bytes() const { return impl_->executor->packed_bytes(); }

}  // namespace vitrail::infer
