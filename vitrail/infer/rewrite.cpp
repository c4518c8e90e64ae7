// SPDX-License-Identifier: Apache-2.0
#include "vitrail/infer/rewrite_internal.h"

#include <algorithm>
#include <map>
#include <set>

namespace vitrail::infer {
namespace {

using ops::OpKind;

// The number of reads of each buffer, by operations and as an output of the pass.
std::map<const Storage*, int> count_readers(const std::vector<FusedOperation>& list,
                                            const std::vector<Tensor>& outputs) {
  std::map<const Storage*, int> readers;
  for (const FusedOperation& item : list) {
    for (const Tensor& input : item.op.inputs) {
      if (input.defined()) ++readers[input.storage().get()];
    }
    if (item.fused_residual()) ++readers[item.residual.storage().get()];
  }
  for (const Tensor& output : outputs) ++readers[output.storage().get()];
  return readers;
}

// The operation that writes all of `tensor`; null for inputs, constants and views of a part.
FusedOperation* producer_of(std::vector<FusedOperation>& list, const Tensor& tensor) {
  for (FusedOperation& item : list) {
    for (const Tensor& output : item.op.outputs) {
      if (output.defined() && output.storage() == tensor.storage())
        return output.numel() == tensor.numel() ? &item : nullptr;
    }
  }
  return nullptr;
}

void fuse_residuals(std::vector<FusedOperation>& list, const std::vector<Tensor>& outputs) {
  const auto readers = count_readers(list, outputs);
  for (FusedOperation& add : list) {
    if (add.op.kind() != OpKind::residual_add) continue;
    const Tensor branch = add.op.inputs[1];
    FusedOperation* linear = producer_of(list, branch);
    const bool fits = linear && linear->op.kind() == OpKind::linear && !linear->fused_residual() &&
                      linear->op.operation->activation == kernels::Activation::none &&
                      readers.at(branch.storage().get()) == 1 && add.op.inputs[0].is_contiguous();
    if (!fits) continue;
    // The fused operation replaces the addition, because both operands have been computed by then.
    FusedOperation fused = *linear;
    fused.residual = add.op.inputs[0];
    fused.scale = add.op.inputs[2];
    fused.op.outputs = add.op.outputs;
    linear->op.outputs.clear();  // marks it for removal
    add = std::move(fused);
  }
  std::erase_if(list, [](const FusedOperation& item) { return item.op.outputs.empty(); });
}

void fuse_unfoldings(std::vector<FusedOperation>& list, const std::vector<Tensor>& outputs) {
  const auto readers = count_readers(list, outputs);
  for (FusedOperation& linear : list) {
    if (linear.op.kind() != OpKind::linear) continue;
    const Tensor patches = linear.op.inputs[0];
    const FusedOperation* unfold = producer_of(list, patches);
    const bool fits = unfold && unfold->op.kind() == OpKind::unfold && patches.is_contiguous() &&
                      readers.at(patches.storage().get()) == 1 && unfold->op.inputs[0].is_contiguous();
    if (!fits) continue;
    linear.op.inputs[0] = unfold->op.inputs[0];
    linear.unfold_stride = unfold->op.operation->stride;
  }
}

void eliminate_dead_operations(std::vector<FusedOperation>& list, const std::vector<Tensor>& outputs) {
  std::set<const Storage*> read;
  for (const Tensor& output : outputs) read.insert(output.storage().get());
  std::vector<FusedOperation> live;  // from the last to the first
  for (auto item = list.rbegin(); item != list.rend(); ++item) {
    const std::vector<Tensor>& results = item->op.outputs;
    const bool is_read = std::any_of(results.begin(), results.end(), [&read](const Tensor& result) {
      return result.defined() && read.contains(result.storage().get());
    });
    if (!is_read) continue;
    for (const Tensor& input : item->op.inputs) {
      if (input.defined()) read.insert(input.storage().get());
    }
    if (item->fused_residual()) read.insert(item->residual.storage().get());
    live.push_back(*item);
  }
  list.assign(live.rbegin(), live.rend());
}

void write_into_concatenations(std::vector<FusedOperation>& list, const std::vector<Tensor>& outputs) {
  const auto readers = count_readers(list, outputs);
  for (FusedOperation& cat : list) {
    if (cat.op.kind() != OpKind::cat) continue;
    int64_t at = 0;
    for (Tensor& part : cat.op.inputs) {
      const int64_t length = part.size(cat.op.operation->axis);
      const Tensor slice = cat.op.outputs[0].narrow(cat.op.operation->axis, at, length);
      at += length;
      if (!part.is_meta() || !part.is_contiguous() || readers.at(part.storage().get()) != 1) continue;
      FusedOperation* producer = producer_of(list, part);
      if (!producer || !producer->op.operation->strided_result) continue;
      producer->op.outputs[0] = slice;
      part = slice;  // has nothing left to copy, since it is a view of the output
    }
  }
}

}  // namespace

std::vector<FusedOperation> rewrite(std::vector<ops::RecordedOperation> operations,
                                    const std::vector<Tensor>& outputs) {
  std::vector<FusedOperation> list;
  for (ops::RecordedOperation& op : operations) list.push_back({std::move(op)});
  fuse_residuals(list, outputs);
  fuse_unfoldings(list, outputs);
  eliminate_dead_operations(list, outputs);
  write_into_concatenations(list, outputs);
  return list;
}

}  // namespace vitrail::infer
