// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a forward pass becomes a list: operations on meta tensors are written down instead of computed.
//
// Views are free: they share a storage, so what is recorded are only the operations that compute, and a storage is a
// buffer.  An operation whose inputs are all real runs at once, even under a Recorder, so that what depends on weights
// alone (an interpolated position embedding) is a constant of the list.
#include <initializer_list>
#include <map>
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
  embedding,     // ids (i64), weight [V, C] → [.., C]
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

// The roles of an image's leading tokens in x [B, N, C], for a precision that treats tokens differently.
struct TokenRoles {
  bool class_token = false;  // token 0 is the class token
  int64_t head_tokens = 0;   // how many leading tokens the heads read individually
};

// While it lives, operations of this thread that meet a meta tensor are appended.  Recorders do not nest.
class Recorder {
 public:
  Recorder();
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  const std::vector<Operation>& operations() const { return operations_; }
  const std::map<const Storage*, TokenRoles>& token_roles() const { return token_roles_; }

 private:
  friend void record(OpKind, std::vector<Tensor>, std::vector<Tensor>, const OpAttributes&);
  friend void annotate_tokens(const Tensor& x, const TokenRoles& roles);
  std::vector<Operation> operations_;
  std::map<const Storage*, TokenRoles> token_roles_;
};

// True when any of the defined tensors is on the meta device: the operation is then to be recorded, not computed.
bool symbolic(std::initializer_list<const Tensor*> inputs);

// A meta tensor for an operation's result.
Tensor symbolic_result(const Shape& shape, DType dtype);

// Appends to the active recorder, if there is one (without, shapes alone are wanted).
void record(OpKind kind, std::vector<Tensor> inputs, std::vector<Tensor> outputs, const OpAttributes& attributes = {});

// Tells the active recorder, if there is one, which tokens the rows of x [B, N, C] are.
void annotate_tokens(const Tensor& x, const TokenRoles& roles);

}  // namespace vitrail::ops
