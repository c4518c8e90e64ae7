// SPDX-License-Identifier: Apache-2.0
#pragma once
// What rounding to 8 bits has left of a layer's weight, W = Q + E, for the tokens that it matters to most: the ones
// that are read alone, and the others' mean.  With x̄ the mean of the other tokens of an image,
//
//   y_t = Q x_t + E x_t  for a token that is read alone,   y_t = Q x_t + E x̄  for any other,
//
// so a few rows of an image are multiplied by E, and what comes of them is the bias of the others.
#include <algorithm>
#include <memory>

#include "vitrail/kernels/gemm/linear.h"

namespace vitrail::kernels {

// A bias for each row, or for rows together: of every `every` rows the first `alone` have one each, the others one
// together, in this order, `ld` floats apart.
struct RowBias {
  const float* data = nullptr;  // null: the layer's own bias, for all rows
  int64_t ld = 0;               // at least the number of outputs, rounded up to 64
  int64_t every = 1, alone = 0;

  int64_t biases_of_every() const { return std::min(alone, every) + (every > alone ? 1 : 0); }
};

// One row's after the other: a division for each would take longer than the row.
class RowBiases {
 public:
  RowBiases(const RowBias& all, int64_t first_row)
      : all_(all),
        next_(first_row % all.every),
        biases_(all.data + first_row / all.every * all.biases_of_every() * all.ld) {}
  const float* next() {
    const float* const bias = biases_ + std::min(next_, all_.alone) * all_.ld;
    if (++next_ == all_.every) {
      next_ = 0;
      biases_ += all_.biases_of_every() * all_.ld;
    }
    return bias;
  }

 private:
  RowBias all_;
  int64_t next_;         // of the `every`
  const float* biases_;  // theirs
};

class WeightCorrection {
 public:
  // rest: E in int8 with the layer's bias.  x has `rows`, `every` of an image, of which the first `alone` are read
  // alone.
  WeightCorrection(std::shared_ptr<const PackedLinear> rest, int64_t rows, int64_t every, int64_t alone);

  size_t bytes() const { return bytes_; }  // of memory for a run, 64-byte aligned

  // x in parts of neighbouring rows, none of them empty.  Who reads a part sums it up, its rows in their order: those
  // from `first` up to `last` at a time, while they are in the cache.
  struct Part {
    int64_t first, last;
  };
  int64_t parts() const { return images_ * parts_of_image_; }
  Part part(int64_t p) const;
  void sum_up(const float* x, int64_t ldx, int64_t p, int64_t first, int64_t last, std::byte* memory) const;
  // When all parts have been summed up.
  RowBias biases(const float* x, int64_t ldx, std::byte* memory) const;

 private:
  void write_tokens(const float* x, int64_t ldx, int64_t image, std::byte* memory) const;

  std::shared_ptr<const PackedLinear> rest_;
  int64_t in_, images_, parts_of_image_;
  RowBias shape_;
  int64_t biases_;
  size_t tokens_at_, biases_at_, scratch_at_, bytes_;
};

}  // namespace vitrail::kernels
