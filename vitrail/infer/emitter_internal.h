// SPDX-License-Identifier: Apache-2.0
#pragma once
// Turns a rewritten list into the steps of a program: closures over packed weights, strides and offsets.
#include <string>
#include <vector>

#include "vitrail/infer/buffers_internal.h"
#include "vitrail/infer/compile_internal.h"
#include "vitrail/infer/packed_weights_internal.h"
#include "vitrail/infer/program.h"
#include "vitrail/infer/token_rows_internal.h"

namespace vitrail::infer {

// A tensor that a step reads or writes.  Its address is computed when the step runs.
struct Operand {
  Tensor tensor;  // shape and strides; for a constant also the data
  enum class Place : uint8_t { none, workspace, input, constant } place = Place::none;
  size_t offset = 0;  // in the workspace, in bytes
  size_t input = 0;   // index among the function's inputs

  // The first element; for integers, cast to a pointer to floats.
  float* at(const Frame& frame) const {
    switch (place) {
      case Place::workspace:
        return reinterpret_cast<float*>(frame.workspace + offset);
      case Place::input:
        return reinterpret_cast<float*>(const_cast<std::byte*>(frame.inputs[input]) +
                                        tensor.offset() * static_cast<int64_t>(size_of(tensor.dtype())));
      case Place::constant:
        return tensor.data<float>();
      case Place::none:
        break;
    }
    return nullptr;
  }
};

// Emits a step per operation.  Whatever does not depend on base addresses (strides, packed weights, the choice of a
// kernel) is computed here, once.
class Emitter {
 public:
  Emitter(const BufferPlan& plan, const TokenRows& token_rows, PackedWeights& weights, const CompileOptions& options)
      : plan_(plan), token_rows_(token_rows), weights_(weights), options_(options) {}

  void emit(const FusedOperation& item);

  std::vector<Step> take_steps() { return std::move(steps_); }
  size_t scratch_bytes() const { return scratch_bytes_; }  // scratch memory after the buffers: the maximum of all steps

 private:
  Operand operand(const Tensor& tensor) const;
  Operand integers(const Tensor& tensor, const std::string& reader) const;
  Operand parameter(const Tensor& tensor) const;  // contiguous, as row kernels read it; undefined stays undefined
  std::string name(const Tensor& tensor) const;
  Step& add(const ops::RecordedOperation& op, const std::string& what, std::function<void(const Frame&)> run);

  void linear(const FusedOperation& item);
  void convolution(const FusedOperation& item);  // a linear layer that unfolds its input
  void cat(const ops::RecordedOperation& op);
  void call_kernel(const ops::RecordedOperation& op);  // any other operation

  const BufferPlan& plan_;
  const TokenRows& token_rows_;
  PackedWeights& weights_;
  CompileOptions options_;
  std::vector<Step> steps_;
  size_t scratch_bytes_ = 0;
};

}  // namespace vitrail::infer
