// SPDX-License-Identifier: Apache-2.0
#pragma once
// FunctionSession: a forward function with named inputs and outputs, compiled for inference.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/nn/module.h"

namespace vitrail::infer {

using NamedTensors = std::vector<nn::NamedTensor>;

// Returns the tensor with this name.  Throws Error that lists the existing names.
const Tensor& find_tensor(const NamedTensors& tensors, const std::string& name);

// A forward pass, written with layers of nn and operations of ops.  It is called with tensors on the meta device
// (shapes without values), once for each combination of input shapes.
using Function = std::function<NamedTensors(const NamedTensors& inputs)>;

struct FunctionOptions {
  int threads = 0;  // 0: as many as the process may use
  // Precision of linear layers and of attention.  In an int8 session, attention has `excluded_precision`.
  kernels::Precision precision = kernels::Precision::fp32;
  std::vector<std::string> excluded_layers = {};  // paths of linear layers that are not int8: "blocks.0.mlp.fc2"
  kernels::Precision excluded_precision = kernels::Precision::half;
  std::vector<std::string> int8_layers = {};  // paths of linear layers that are int8 in a session of another precision
  // Paths of linear layers whose weights the function reads in other operations too, at any input shapes.  Their memory
  // is not released.
  std::vector<std::string> retained_layers = {};
  bool retain_all = false;  // no memory is released: the module can still compute, and other sessions can pack it
  // True if the first extent of every input and output is a batch of independent samples.  Threads then compute samples
  // in parallel.
  bool split_batch = false;
};

// Compiles at the first call with new input shapes, and packs each weight once.  run() is const and thread-safe.
class FunctionSession {
 public:
  // module: owns the parameters that `forward` uses.  It must outlive the session, and is in eval mode afterwards.
  // Packing a weight releases its original memory, so the module itself can no longer compute.
  FunctionSession(nn::Module& module, Function forward, const FunctionOptions& options = {});
  ~FunctionSession();
  FunctionSession(const FunctionSession&) = delete;
  FunctionSession& operator=(const FunctionSession&) = delete;

  // inputs: 1 to 8, in the same order in all calls.  Floating tensors are converted to f32, integer tensors (token ids)
  // to i64.  Outputs are f32.  Throws Error for inputs that the function does not accept.
  NamedTensors run(const NamedTensors& inputs) const;
  // Writes into contiguous f32 tensors of the outputs' shapes, in the outputs' order.
  void run_into(const NamedTensors& inputs, const std::vector<Tensor>& results) const;

  std::string listing(const NamedTensors& inputs) const;  // the steps of the compiled program, as text
  size_t packed_bytes() const;                            // memory of the packed weights

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vitrail::infer
