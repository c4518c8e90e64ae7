// SPDX-License-Identifier: Apache-2.0
#pragma once
// A set of vectors that is read in blocks: in memory, in a file, or quantised.
#include <cstdint>

#include "vitrail/tensor/tensor.h"

namespace vitrail::analysis {

// count vectors of `width` values.
class VectorRows {
 public:
  virtual ~VectorRows() = default;
  virtual int64_t count() const = 0;
  virtual int64_t width() const = 0;
  // Vectors [first, first + count).  May be called from several threads.
  virtual void read(int64_t first, int64_t count, float* values) const = 0;
};

// The rows of a tensor [count, width].
class TensorRows : public VectorRows {
 public:
  explicit TensorRows(const Tensor& rows);  // throws Error for another rank
  int64_t count() const override { return rows_.size(0); }
  int64_t width() const override { return rows_.size(1); }
  void read(int64_t first, int64_t count, float* values) const override;

 private:
  Tensor rows_;
};

}  // namespace vitrail::analysis
