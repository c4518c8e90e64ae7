// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory planning: the offset of each intermediate result in the workspace.
#include <map>
#include <optional>
#include <vector>

#include "vitrail/base/round_up_internal.h"
#include "vitrail/infer/rewrite_internal.h"

namespace vitrail::infer {

// Rounded up to the alignment of allocations, so that the next buffer is aligned, too.
inline size_t aligned(size_t bytes) { return round_up(bytes, Allocator::kAlignment); }

// Buffers whose lifetimes do not overlap share memory.  A fused residual addition works in place if nothing reads its
// residual afterwards, and the layer multiplies something else.
class BufferPlan {
 public:
  BufferPlan(const std::vector<FusedOperation>& list, const std::vector<Tensor>& inputs,
             const std::vector<Tensor>& outputs);

  // The index of the input that the tensor is, or is a view of; nothing for any other tensor.
  std::optional<size_t> input_of(const Tensor& tensor) const;
  bool holds(const Tensor& tensor) const { return buffers_.contains(tensor.storage().get()); }
  size_t offset_of(const Tensor& tensor) const;  // byte offset of the tensor's first element
  int number_of(const Tensor& tensor) const;     // names the buffer in listings: numbers in order of first use
  size_t bytes() const { return bytes_; }

 private:
  struct Buffer {
    int number = 0;
    int first = 0, last = 0;  // its lifetime: indices of the first and of the last operation that uses it
    size_t bytes = 0, offset = 0;
    const Storage* same_as = nullptr;  // the buffer whose memory this one reuses in place
  };
  void record_use(const Tensor& tensor, int operation, bool writes);
  const Storage* root(const Storage* storage) const;
  void share_in_place(const std::vector<FusedOperation>& list);
  void assign_offsets();

  std::vector<const Storage*> inputs_;
  std::map<const Storage*, Buffer> buffers_;
  size_t bytes_ = 0;
};

}  // namespace vitrail::infer
