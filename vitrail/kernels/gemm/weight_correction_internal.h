// SPDX-License-Identifier: Apache-2.0
#pragma once
// Computes WeightCorrection (linear.h) beside a quantised GEMM.  E is multiplied by a few rows of each group only: the
// individual rows and the mean of the others.  The results, with the bias that is packed with E, become biases of rows.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "vitrail/kernels/gemm/linear.h"

namespace vitrail::kernels {

// Biases [groups][biases of a group], each [out], `ld` floats apart.  The first `individual_rows` rows of a group have
// one bias each, its other rows share one, which follows these.
struct RowBias {
  const float* data = nullptr;  // null: the layer's bias for every row
  int64_t ld = 0;               // at least the number of outputs, rounded up to 64
  int64_t group_rows = 1, individual_rows = 0;

  bool has_shared_bias() const { return group_rows > individual_rows; }
  int64_t biases_per_group() const { return individual_rows + (has_shared_bias() ? 1 : 0); }
};

// The biases of consecutive rows.  An iterator, because a division for each row would take longer than the row.
class RowBiasIterator {
 public:
  RowBiasIterator(const RowBias& biases, int64_t first_row)
      : biases_(biases),
        row_in_group_(first_row % biases.group_rows),
        group_(biases.data + first_row / biases.group_rows * biases.biases_per_group() * biases.ld) {}

  const float* next() {
    const float* const bias = group_ + std::min(row_in_group_, biases_.individual_rows) * biases_.ld;
    if (++row_in_group_ == biases_.group_rows) {
      row_in_group_ = 0;
      group_ += biases_.biases_per_group() * biases_.ld;
    }
    return bias;
  }

 private:
  RowBias biases_;
  int64_t row_in_group_;
  const float* group_;  // the biases of the current group
};

// One GEMM's correction, in two steps: accumulate() sums the rows of x while they are quantised and in cache, then
// row_biases() multiplies by E.  `scratch` has scratch_bytes(), 64-byte aligned, and is the same for all calls.
class WeightCorrectionPass {
 public:
  explicit WeightCorrectionPass(const LinearRows& rows);

  bool enabled() const { return error_ != nullptr; }  // nothing else is used if not
  size_t scratch_bytes() const { return scratch_bytes_; }

  // The rows of x in chunks, none of them empty.  One thread takes a chunk and accumulates its rows in order, a few at
  // a time: [first, last).  So the sums do not depend on the number of threads.
  struct RowRange {
    int64_t first, last;
  };
  int64_t num_chunks() const { return groups_ * chunks_per_group_; }
  RowRange chunk(int64_t index) const;
  void accumulate(const MatrixView<const float>& x, int64_t chunk, RowRange rows, std::byte* scratch) const;

  // After all rows were accumulated.  Without a correction: no biases of rows.
  RowBias row_biases(const MatrixView<const float>& x, std::byte* scratch) const;

 private:
  void write_inputs(const MatrixView<const float>& x, int64_t group, std::byte* scratch) const;

  const PackedLinear* error_;
  int64_t in_ = 0, groups_ = 0, chunks_per_group_ = 0, num_biases_ = 0;
  RowBias layout_;
  // Byte offsets in the scratch.  The sums of the chunks are at 0.
  size_t inputs_at_ = 0, biases_at_ = 0, gemm_scratch_at_ = 0, scratch_bytes_ = 0;
};

}  // namespace vitrail::kernels
