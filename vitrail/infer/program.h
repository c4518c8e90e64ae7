// SPDX-License-Identifier: Apache-2.0
#pragma once
// A compiled forward pass: a flat list of steps over one workspace.
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::infer {

// The memory of one run.
struct Frame {
  static constexpr size_t kMaxInputs = 8;
  std::byte* workspace = nullptr;                        // Program::workspace_bytes(), aligned to kAlignment
  std::array<const std::byte*, kMaxInputs> inputs = {};  // contiguous, in the function's order
};

// The code that runs a step.
struct StepKernel {
  std::string name;  // "int8 GEMM", "layer norm"
  std::string isa;   // name_of(kernels::Isa), scalar for loops in plain C++; or "oneDNN"
  kernels::Arithmetic arithmetic = kernels::Arithmetic::fp32;
};

struct Step {
  std::string text;  // "linear+gelu %7 [1, 197, 192] × [768, 192] → %8 [1, 197, 768]"
  double flops = 0;  // multiply-adds count two
  double bytes = 0;  // bytes read and written, counting each operand once
  StepKernel kernel;
  std::function<void(const Frame&)> run;
};

// An output of the program, in the workspace after a run.
struct ProgramOutput {
  Shape shape;
  size_t offset;  // in bytes
};

// Immutable.  Any number of threads may call run(), each with its own workspace.
class Program {
 public:
  // The workspace contains the buffers of intermediate results, then the scratch memory of the running step.
  Program(std::vector<Step> steps, std::vector<ProgramOutput> outputs, size_t buffer_bytes, size_t scratch_bytes)
      : steps_(std::move(steps)),
        outputs_(std::move(outputs)),
        buffer_bytes_(buffer_bytes),
        workspace_bytes_(buffer_bytes + scratch_bytes) {}

  void run(const Frame& frame) const;
  // The same, and calls after_step with the duration of each step.
  void run(const Frame& frame, const std::function<void(size_t step, double seconds)>& after_step) const;

  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<ProgramOutput>& outputs() const { return outputs_; }
  size_t workspace_bytes() const { return workspace_bytes_; }
  std::string listing() const;  // one line per step, then the buffers' size; the same on every machine

 private:
  std::vector<Step> steps_;
  std::vector<ProgramOutput> outputs_;
  size_t buffer_bytes_, workspace_bytes_;
};

}  // namespace vitrail::infer
