// SPDX-License-Identifier: Apache-2.0
#pragma once
// Executor: what Session and FunctionSession share.  It compiles a function for the shapes it is called with, packs the
// weights once, and runs the compiled programs for any number of threads.
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "vitrail/infer/packed_weights.h"
#include "vitrail/infer/program.h"

namespace vitrail::infer {

struct ExecutorOptions {
  int threads = 0;           // 0: all that the process may use
  bool split_batch = false;  // axis 0 of every input and output is a batch of samples that do not depend on each other
  kernels::Precision attention = kernels::Precision::fp32;  // as AttentionArgs has it
};

// What a function is called with, by shape.
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

// All that a call needs: made once for each variant and input shapes, and immutable.
struct Plan {
  uint64_t variant = 0;
  std::vector<TensorSpec> inputs, outputs;
  int64_t batch = 1;  // axis 0 of the inputs where the batch is split, else 1
  // Data-parallel parts: each is computed by one thread.  Their samples come first.
  std::vector<BatchPart> parallel;
  // The remainder: each part is computed by all threads together.
  std::vector<BatchPart> sequential;
  size_t workspace_bytes = 0;  // of the largest part

  const BatchPart& largest_part() const;  // of the parallel ones, if there are any
};

class Executor {
 public:
  // Runs the function on meta tensors.  `variant` tells functions of one executor apart, such as requests for logits
  // and for features.
  using Function = std::function<std::vector<Tensor>(uint64_t variant, const std::vector<Tensor>& inputs)>;

  Executor(Function function, PackedWeights weights, const ExecutorOptions& options);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Found, or compiled.  Errors: what the function throws for such inputs.
  std::shared_ptr<const Plan> plan(uint64_t variant, std::span<const TensorSpec> inputs) const;
  std::shared_ptr<const Program> program(uint64_t variant, std::span<const TensorSpec> inputs) const;

  // inputs: contiguous, of the plan's types and shapes.  The results are new tensors.
  std::vector<Tensor> run(const Plan& plan, std::span<const Tensor> inputs) const;
  // The same into contiguous f32 tensors of the outputs' shapes, without an allocation.  Errors: other results.
  void run_into(const Plan& plan, std::span<const Tensor> inputs, std::span<const Tensor> results) const;
  // Runs the plan's first part once, and reports how long each step took.
  void profile(const Plan& plan, std::span<const Tensor> inputs,
               const std::function<void(size_t step, double seconds)>& after_step) const;

  int threads() const { return threads_; }
  size_t packed_bytes() const;

 private:
  class Workspace;
  struct CompiledProgram;
  std::shared_ptr<const Program> find_or_compile(uint64_t variant, std::vector<TensorSpec> inputs) const;
  std::shared_ptr<const Plan> make_plan(uint64_t variant, std::span<const TensorSpec> inputs) const;
  void run_part(const Plan& plan, const BatchPart& part, std::span<const Tensor> inputs,
                std::span<const Tensor> results) const;

  Function function_;
  int threads_;
  bool split_batch_;
  kernels::Precision attention_;
  mutable std::mutex mutex_;  // guards what follows
  mutable PackedWeights weights_;
  mutable std::list<std::shared_ptr<const Plan>> plans_;  // most recently used first
  mutable std::list<CompiledProgram> programs_;           // likewise
  mutable std::vector<std::shared_ptr<Storage>> idle_workspaces_;
};

}  // namespace vitrail::infer
