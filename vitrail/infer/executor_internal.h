// SPDX-License-Identifier: Apache-2.0
#pragma once
// Executor: the common part of Session and FunctionSession.  It compiles a function for each combination of input
// shapes, packs the weights once, and runs the compiled programs on several threads.
#include <algorithm>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "vitrail/infer/packed_weights_internal.h"
#include "vitrail/infer/program.h"

namespace vitrail::infer {

struct ExecutorOptions {
  int threads = 0;           // 0: as many as the process may use
  bool split_batch = false;  // axis 0 of every input and output is a batch of samples that do not depend on each other
  kernels::Precision attention = kernels::Precision::fp32;  // as in kernels::AttentionArgs
};

// The type and shape of an input or output.
struct TensorSpec {
  DType dtype = DType::f32;
  Shape shape;
  bool operator==(const TensorSpec&) const = default;
};

// Some samples of a batch and the program that computes them.
struct BatchPart {
  int64_t first = 0, count = 0;
  std::shared_ptr<const Program> program;
};

// Selects one of an executor's functions, such as those of requests for logits and for features.
struct Variant {
  uint64_t number = 0;
  std::span<const int64_t> layers = {};
};

// A variant with a list of its own.
struct KeptVariant {
  KeptVariant() = default;
  explicit KeptVariant(const Variant& variant)
      : number(variant.number), layers(variant.layers.begin(), variant.layers.end()) {}
  bool operator==(const Variant& other) const {
    return number == other.number && std::ranges::equal(layers, other.layers);
  }

  uint64_t number = 0;
  std::vector<int64_t> layers;
};

// How a call is computed.  Made once for each variant and combination of input shapes; immutable.
struct Plan {
  KeptVariant variant;
  std::vector<TensorSpec> inputs, outputs;
  int64_t batch = 1;  // the extent of axis 0 of the inputs if the batch is split, else 1
  // Data-parallel parts: one thread computes each.  Their samples come first.
  std::vector<BatchPart> parallel;
  // The remaining samples: all threads together compute each part.
  std::vector<BatchPart> sequential;
  size_t workspace_bytes = 0;  // the maximum over all parts

  const BatchPart& largest_part() const;  // in `parallel` if that has parts, else in `sequential`
};

class Executor {
 public:
  // The forward pass, called with meta tensors to record it.
  using Function = std::function<std::vector<Tensor>(const Variant& variant, const std::vector<Tensor>& inputs)>;

  Executor(Function function, PackedWeights weights, const ExecutorOptions& options);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Returns a cached plan or program, or compiles it.  Throws what the function throws for such inputs.
  std::shared_ptr<const Plan> plan(const Variant& variant, std::span<const TensorSpec> inputs) const;
  std::shared_ptr<const Program> program(const Variant& variant, std::span<const TensorSpec> inputs) const;

  // inputs: contiguous, with the plan's types and shapes.  Returns new tensors.
  std::vector<Tensor> run(const Plan& plan, std::span<const Tensor> inputs) const;
  // Writes into contiguous f32 tensors of the outputs' shapes, and allocates nothing.  Throws Error for other results.
  void run_into(const Plan& plan, std::span<const Tensor> inputs, std::span<const Tensor> results) const;
  // Runs the plan's largest part once, and reports the duration of each step.
  void profile(const Plan& plan, std::span<const Tensor> inputs,
               const std::function<void(size_t step, double seconds)>& after_step) const;

  int threads() const { return threads_; }
  size_t packed_bytes() const;

 private:
  class Workspace;
  struct CompiledProgram;
  std::shared_ptr<const Program> find_or_compile(const Variant& variant, std::vector<TensorSpec> inputs) const;
  std::shared_ptr<const Plan> find_plan(const Variant& variant, std::span<const TensorSpec> inputs) const;
  std::shared_ptr<const Plan> make_plan(const Variant& variant, std::span<const TensorSpec> inputs) const;
  void run_part(const Plan& plan, const BatchPart& part, std::span<const Tensor> inputs,
                std::span<const Tensor> results) const;

  Function function_;
  int threads_;
  bool split_batch_;
  kernels::Precision attention_;
  mutable std::mutex mutex_;  // guards the members below
  mutable PackedWeights weights_;
  mutable std::list<std::shared_ptr<const Plan>> plans_;  // most recently used first
  mutable std::list<CompiledProgram> programs_;           // most recently used first
  mutable std::vector<std::shared_ptr<Storage>> idle_workspaces_;
};

}  // namespace vitrail::infer
