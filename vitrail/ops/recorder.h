// SPDX-License-Identifier: Apache-2.0
#pragma once
// Records a forward pass as a list: operations on meta tensors are recorded instead of computed.
//
// Views are not recorded: they share a storage, and a storage is a buffer of the pass.  An operation whose inputs all
// have data runs at once, even under a Recorder.  So what depends only on parameters (an interpolated position
// embedding) is a constant of the list.
#include <map>
#include <memory>
#include <vector>

#include "vitrail/ops/operation.h"

namespace vitrail::ops {

// An operation with its operands.  Optional inputs that it does not have are undefined tensors.
struct RecordedOperation {
  std::shared_ptr<const Operation> operation;
  std::vector<Tensor> inputs, outputs;

  OpKind kind() const { return operation->kind; }
};

// The floating-point operations of GEMMs, attention, token merging and convolutions: 2 per multiply-add.
double flops_of(const std::vector<RecordedOperation>& operations);

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
  const std::vector<RecordedOperation>& operations() const { return operations_; }
  const std::map<const Storage*, TokenRoles>& token_roles() const { return token_roles_; }

 private:
  friend void record(RecordedOperation operation);
  friend void annotate_tokens(const Tensor& x, const TokenRoles& roles);
  std::vector<RecordedOperation> operations_;
  std::map<const Storage*, TokenRoles> token_roles_;
};

// Appends to the active recorder.  Without one, does nothing: the caller only needs the result's shape.
void record(RecordedOperation operation);

// Tells the active recorder, if there is one, the roles of the tokens in x [B, N, C].
void annotate_tokens(const Tensor& x, const TokenRoles& roles);

}  // namespace vitrail::ops
