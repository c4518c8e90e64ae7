// SPDX-License-Identifier: Apache-2.0
#include "vitrail/infer/buffers_internal.h"

#include <algorithm>

#include "vitrail/base/error.h"

namespace vitrail::infer {
namespace {

// True for the weight and bias of a linear layer.  They are packed, so the program does not read the tensors.
bool is_packed(const FusedOperation& item, size_t input) { return item.op.kind() == ops::OpKind::linear && input > 0; }

}  // namespace

BufferPlan::BufferPlan(const std::vector<FusedOperation>& list, const std::vector<Tensor>& inputs,
                       const std::vector<Tensor>& outputs) {
  for (const Tensor& input : inputs) inputs_.push_back(input.storage().get());
  for (int i = 0; i < static_cast<int>(list.size()); ++i) {
    const FusedOperation& item = list[i];
    for (size_t n = 0; n < item.op.inputs.size(); ++n) {
      if (!is_packed(item, n)) record_use(item.op.inputs[n], i, item.op.kind() == ops::OpKind::cat);
    }
    record_use(item.residual, i, false);
    for (const Tensor& output : item.op.outputs) record_use(output, i, true);
  }
  for (const Tensor& output : outputs) record_use(output, static_cast<int>(list.size()), false);
  share_in_place(list);
  assign_offsets();
}

void BufferPlan::record_use(const Tensor& tensor, int operation, bool writes) {
  if (!tensor.defined() || !tensor.is_meta() || input_of(tensor)) return;
  const Storage* storage = tensor.storage().get();
  if (!buffers_.contains(storage)) {
    if (!writes) {
      throw Error("compile", "operations that read inputs or earlier results",
                  str("a read of ", tensor.shape(), ", which nothing has written"));
    }
    const int number = static_cast<int>(buffers_.size());  // before the map grows
    buffers_[storage] = {number, operation, operation, aligned(storage->bytes()), 0, nullptr};
  }
  buffers_[storage].last = operation;
}

std::optional<size_t> BufferPlan::input_of(const Tensor& tensor) const {
  const auto found = std::find(inputs_.begin(), inputs_.end(), tensor.storage().get());
  if (found == inputs_.end()) return std::nullopt;
  return static_cast<size_t>(found - inputs_.begin());
}

const Storage* BufferPlan::root(const Storage* storage) const {
  while (buffers_.at(storage).same_as) storage = buffers_.at(storage).same_as;
  return storage;
}

void BufferPlan::share_in_place(const std::vector<FusedOperation>& list) {
  for (int i = 0; i < static_cast<int>(list.size()); ++i) {
    const Tensor& input = list[i].op.inputs[0];
    const Tensor& source = list[i].op.operation->in_place ? input : list[i].residual;
    if (!source.defined() || !holds(source)) continue;
    const Storage* from = root(source.storage().get());
    // A linear layer writes parts of its result before it has read all of its input.
    if (list[i].fused_residual() && holds(input) && root(input.storage().get()) == from) continue;
    Buffer& to = buffers_.at(list[i].op.outputs[0].storage().get());
    Buffer& origin = buffers_.at(from);
    if (origin.last != i || origin.bytes != to.bytes) continue;
    to.same_as = from;
    origin.last = to.last;
  }
}

// Greedy by size (Pisarchyk & Lee 2020, "Efficient memory management for deep neural net inference"): the largest
// buffer first, each at the lowest offset that is free during its lifetime.
void BufferPlan::assign_offsets() {
  std::vector<Buffer*> order;
  for (auto& [storage, buffer] : buffers_) {
    if (!buffer.same_as) order.push_back(&buffer);
  }
  std::sort(order.begin(), order.end(), [](const Buffer* a, const Buffer* b) {
    return a->bytes != b->bytes ? a->bytes > b->bytes : a->number < b->number;
  });
  std::vector<const Buffer*> placed;
  for (Buffer* buffer : order) {
    std::vector<const Buffer*> overlapping;
    for (const Buffer* other : placed) {
      if (other->first <= buffer->last && buffer->first <= other->last) overlapping.push_back(other);
    }
    std::sort(overlapping.begin(), overlapping.end(),
              [](const Buffer* a, const Buffer* b) { return a->offset < b->offset; });
    size_t offset = 0;
    for (const Buffer* other : overlapping) {
      if (offset + buffer->bytes <= other->offset) break;
      offset = std::max(offset, other->offset + other->bytes);
    }
    buffer->offset = offset;
    bytes_ = std::max(bytes_, offset + buffer->bytes);
    placed.push_back(buffer);
  }
}

size_t BufferPlan::offset_of(const Tensor& tensor) const {
  const Buffer& buffer = buffers_.at(root(tensor.storage().get()));
  return buffer.offset + static_cast<size_t>(tensor.offset()) * size_of(tensor.dtype());
}

int BufferPlan::number_of(const Tensor& tensor) const { return buffers_.at(root(tensor.storage().get())).number; }

}  // namespace vitrail::infer
