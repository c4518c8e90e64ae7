// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which bytes of the workspace each intermediate result has.
#include <map>
#include <optional>
#include <vector>

#include "vitrail/infer/rewrite.h"

namespace vitrail::infer {

// Rounded up, so that what lies behind is aligned, too.
inline size_t aligned(size_t bytes) {
  return (bytes + Allocator::kAlignment - 1) / Allocator::kAlignment * Allocator::kAlignment;
}

// Buffers whose lifetimes do not meet share memory.  A fused residual addition works in place where its residual is not
// read again.
class BufferPlan {
 public:
  BufferPlan(const std::vector<FusedOperation>& list, const std::vector<Tensor>& inputs,
             const std::vector<Tensor>& outputs);

  // Which of the inputs the tensor is or views; none for any other tensor.
  std::optional<size_t> input_of(const Tensor& tensor) const;
  bool holds(const Tensor& tensor) const { return buffers_.contains(tensor.storage().get()); }
  size_t offset_of(const Tensor& tensor) const;  // of the tensor's first element, in bytes
  int number_of(const Tensor& tensor) const;     // for listings: buffers in order of first use
  size_t bytes() const { return bytes_; }

 private:
  struct Buffer {
    int number = 0;
    int first = 0, last = 0;  // the operations that write it first and read it last
    size_t bytes = 0, offset = 0;
    const Storage* same_as = nullptr;  // in place of another
  };
  void note(const Tensor& tensor, int at, bool writes);
  const Storage* root(const Storage* storage) const;
  void share_residuals(const std::vector<FusedOperation>& list);
  void place();

  std::vector<const Storage*> inputs_;
  std::map<const Storage*, Buffer> buffers_;
  size_t bytes_ = 0;
};

}  // namespace vitrail::infer
