// SPDX-License-Identifier: Apache-2.0
#pragma once
// From the rewritten list to the steps of a program: each operation becomes a closure over pointers and sizes.
#include <string>
#include <vector>

#include "vitrail/infer/buffers.h"
#include "vitrail/infer/compile.h"
#include "vitrail/infer/packed_weights.h"
#include "vitrail/infer/program.h"
#include "vitrail/infer/token_rows_internal.h"

namespace vitrail::infer {

// A tensor of the program, found when a step runs.
struct Operand {
  Tensor tensor;  // its shape and strides; the data of a constant
  enum class Place : uint8_t { none, workspace, input, constant } place = Place::none;
  size_t offset = 0;  // in the workspace, in bytes
  size_t input = 0;   // which of the function's inputs

  float* at(const Frame& frame) const {
    switch (place) {
      case Place::workspace:
        return reinterpret_cast<float*>(frame.workspace + offset);
      case Place::input:
        return const_cast<float*>(reinterpret_cast<const float*>(frame.inputs[input])) + tensor.offset();
      case Place::constant:
        return tensor.data<float>();
      case Place::none:
        break;
    }
    return nullptr;
  }
  double bytes() const { return place == Place::none ? 0 : static_cast<double>(tensor.numel()) * sizeof(float); }
};

// Writes one step after another.  Everything that can be settled now (strides, packed weights, whether a fast path
// holds) is; a step that runs only adds base addresses.
class Emitter {
 public:
  Emitter(const BufferPlan& plan, const TokenRows& token_rows, PackedWeights& weights, const CompileOptions& options)
      : plan_(plan), token_rows_(token_rows), weights_(weights), options_(options) {}

  void emit(const FusedOperation& item);

  std::vector<Step> take_steps() { return std::move(steps_); }
  size_t scratch_bytes() const { return scratch_bytes_; }  // what the greediest step needs behind the buffers

 private:
  Operand operand(const Tensor& tensor) const;
  Operand parameter(const Tensor& tensor) const;  // of a row kernel: contiguous f32, or nothing
  std::string name(const Tensor& tensor) const;
  void add(const ops::Operation& op, const std::string& what, std::function<void(const Frame&)> run);

  void linear(const FusedOperation& item);
  void layer_norm(const ops::Operation& op);
  void residual_add(const ops::Operation& op);
  void attention(const ops::Operation& op);
  void patchify(const ops::Operation& op);
  void activation(const ops::Operation& op);
  void silu_gate(const ops::Operation& op);
  template <class Op>
  void combine(const ops::Operation& op, Op function);
  void cat(const ops::Operation& op);
  void mean(const ops::Operation& op);
  void copy(const ops::Operation& op);
  void merge_tokens(const ops::Operation& op);
  void embedding(const ops::Operation& op);

  const BufferPlan& plan_;
  const TokenRows& token_rows_;
  PackedWeights& weights_;
  CompileOptions options_;
  std::vector<Step> steps_;
  size_t scratch_bytes_ = 0;
};

}  // namespace vitrail::infer
