// SPDX-License-Identifier: Apache-2.0
#pragma once
// Records a forward pass as a list: operations on meta tensors are recorded instead of computed.
//
// Views are not recorded: they share a storage, and a storage is a buffer of the pass.  An operation whose inputs all
// have data runs at once, even under a Recorder.  So what depends only on parameters (an interpolated position
// embedding) is a constant of the list.
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/kernels/rowwise/activation.h"
#include "vitrail/kernels/rowwise/rotary.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

enum class OpKind : uint8_t {
  linear,        // x, weight, [bias]; activation
  layer_norm,    // x, [gamma], [beta]; eps
  rms_norm,      // x, [gamma]; eps
  residual_add,  // x, y, [scale]
  attention,     // q, k, v, [bias]; scale → out, [weights]
  rotary,        // qkv, table; heads, pairs
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
  custom,        // an operation that brings its own function; remains the last kind
};
const char* name_of(OpKind kind);

// How a compiled program runs an operation of kind custom.  docs/extending.md has an example.
struct CustomOperation {
  static constexpr size_t kMaxTensors = 8;  // inputs, and outputs
  using Function = std::function<void(const float* const* inputs, float* const* outputs)>;

  std::string name;  // in listings: "rms_norm"
  // Computes contiguous f32 outputs from contiguous f32 inputs, in recorded order; null for an undefined tensor. Shapes
  // are known when the operation is recorded, so the function holds them.  It runs in several threads at once, and must
  // use parallel_for() for its loops and no threads of another library.
  Function compute = {};
  // The same for sessions whose attention has Precision::half; may be empty.
  Function compute_half = {};
  double flops = 0;  // 2 per multiply-add
  bool keeps_token_order =
      false;  // row i of the output [B, N, C] belongs to the same token as row i of the first input
};

struct OpAttributes {
  kernels::Activation activation = kernels::Activation::none;
  double eps = 0, scale = 1;
  int axis = 0;
  int64_t height = 0, width = 0;
  int64_t merged = 0, prefix = 0;
  int64_t heads = 0;
  kernels::RotaryPairs pairs = kernels::RotaryPairs::halves;
  std::shared_ptr<const CustomOperation> custom = {};
};

// An operation.  Optional inputs and outputs that it does not have are undefined tensors.
struct Operation {
  OpKind kind;
  std::vector<Tensor> inputs, outputs;
  OpAttributes attributes;
};

// The floating-point operations of GEMMs, attention, token merging and custom operations: 2 per multiply-add.  0 for
// other operations.
double flops_of(const Operation& operation);
double flops_of(const std::vector<Operation>& operations);

// The roles of the leading tokens in x [B, N, C], for precisions that treat tokens differently.
struct TokenRoles {
  bool class_token = false;  // token 0 is the class token
  int64_t head_tokens = 0;   // number of leading tokens that the heads read individually
};

// While it lives, operations on this thread that have a meta tensor as input are appended.  Throws Error if another one
// is active on the thread.
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

// True if any of the defined tensors is on the meta device.  The operation must then be recorded, not computed.
bool symbolic(std::initializer_list<const Tensor*> inputs);

// A meta tensor for an operation's result.
Tensor symbolic_result(const Shape& shape, DType dtype);

// Appends to the active recorder.  Without one, does nothing: the caller only needs the result's shape.
void record(OpKind kind, std::vector<Tensor> inputs, std::vector<Tensor> outputs, const OpAttributes& attributes = {});

// Tells the active recorder, if there is one, the roles of the tokens in x [B, N, C].
void annotate_tokens(const Tensor& x, const TokenRoles& roles);

}  // namespace vitrail::ops
