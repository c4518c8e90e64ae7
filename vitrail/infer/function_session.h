// SPDX-License-Identifier: Apache-2.0
#pragma once
// FunctionSession: any forward function of named inputs and outputs, compiled for inference.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/nn/module.h"

namespace vitrail::infer {

using NamedTensors = std::vector<nn::NamedTensor>;

// The tensor of that name.  Throws Error that lists the names there are.
const Tensor& find_tensor(const NamedTensors& tensors, const std::string& name);

// A forward pass written with layers of nn and operations of ops.  It is called with tensors on the meta device, which
// have a shape and no values, once for each combination of input shapes.
using Function = std::function<NamedTensors(const NamedTensors& inputs)>;

struct FunctionOptions {
  int threads = 0;  // 0: all that the process may use
  // Of linear layers and of attention.  In int8, attention is computed in `excluded_precision`.
  kernels::Precision precision = kernels::Precision::fp32;
  std::vector<std::string> excluded_layers;  // module paths of linear layers that are not in int8: "blocks.0.mlp.fc2"
  kernels::Precision excluded_precision = kernels::Precision::half;
  // The first extent of every input and output is a batch of samples that do not depend on each other.  Threads then
  // compute samples in parallel.
  bool split_batch = false;
};

// Compiles on the first call with new input shapes, and packs each weight once.  run() is const and thread-safe.
class FunctionSession {
 public:
  // module: owns the parameters that `forward` uses; it must outlive the session, and is in eval mode afterwards.  As
  // weights are packed, their original memory is given back, so the module itself can no longer compute.
  FunctionSession(nn::Module& module, Function forward, const FunctionOptions& options = {});
  ~FunctionSession();
  FunctionSession(const FunctionSession&) = delete;
  FunctionSession& operator=(const FunctionSession&) = delete;

  // inputs: in one order in all calls.  Floating tensors are converted to f32, integer tensors (token ids) to i64.
  // Outputs are f32.  Throws Error for inputs that the function does not take.
  NamedTensors run(const NamedTensors& inputs) const;
  // The same into contiguous f32 tensors of the outputs' shapes, in the outputs' order.
  void run_into(const NamedTensors& inputs, const std::vector<Tensor>& results) const;

  std::string listing(const NamedTensors& inputs) const;  // of the compiled program
  size_t packed_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vitrail::infer
