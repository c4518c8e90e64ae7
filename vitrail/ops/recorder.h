// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a forward pass becomes a list: operations on meta tensors are written down instead of computed.
//
// Views are free: they share a storage, so what is recorded are only the operations that compute, and a storage is a
// buffer.  An operation whose inputs are all real runs at once, even under a Recorder, so that what depends on weights
// alone (an interpolated position embedding) is a constant of the list.
#include <initializer_list>
#include <string>
#include <vector>

#include "vitrail/kernels/rowwise/activation.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

enum class OpKind : uint8_t {
  linear,        // x, weight, [bias]; activation
  layer_norm,    // x, [gamma], [beta]; eps
  residual_add,  // x, y, [scale]
  attention,     // q, k, v, [bias]; scale → out, [weights]
  patchify,      // image → rows of patches; extent: patch height, width
  activation,    // x; activation
  silu_gate,     // x [.., 2C] → [.., C]
  add,           // a, b (broadcast)
  mul,           // a, b (broadcast)
  cat,           // inputs joined along axis
  mean,          // x over axis
  copy,          // a strided view made contiguous
  merge_tokens,  // x, keys, [sizes]; merged, prefix → x, sizes, log sizes
};
const char* name_of(OpKind kind);

struct OpAttributes {
  kernels::Activation activation = kernels::Activation::none;
  double eps = 0, scale = 1;
  int axis = 0;
  int64_t height = 0, width = 0;
  int64_t merged = 0, prefix = 0;
};

// One operation: undefined tensors stand for optional inputs that were not given.
struct Operation {
  OpKind kind;
  std::vector<Tensor> inputs, outputs;
  OpAttributes attributes;
};

// Of an operation's products: two for each multiply-add.  0 for what has none.
double flops_of(const Operation& operation);
double flops_of(const std::vector<Operation>& operations);

// While it lives, operations of this thread that meet a meta tensor are appended.  Recorders do not nest.
class Recorder {
 public:
  Recorder();
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  const std::vector<Operation>& operations() const { return operations_; }

 private:
  friend void record(OpKind, std::vector<Tensor>, std::vector<Tensor>, const OpAttributes&);
  std::vector<Operation> operations_;
};

// True when any of the defined tensors is on the meta device: the operation is then to be recorded, not computed.
bool symbolic(std::initializer_list<const Tensor*> inputs);

// A meta tensor for an operation's result.
Tensor symbolic_result(const Shape& shape, DType dtype);

// Appends to the active recorder, if there is one (without, shapes alone are wanted).
void record(OpKind kind, std::vector<Tensor> inputs, std::vector<Tensor> outputs, const OpAttributes& attributes = {});

}  // namespace vitrail::ops
