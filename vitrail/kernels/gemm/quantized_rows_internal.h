// SPDX-License-Identifier: Apache-2.0
#pragma once
// The memory layout of x in a quantised GEMM: rows of packed 32-bit K groups, each after its metadata.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "vitrail/base/round_up_internal.h"
#include "vitrail/kernels/gemm/activation_quantization_internal.h"
#include "vitrail/kernels/gemm/cache_blocking_internal.h"
#include "vitrail/kernels/gemm/linear.h"

namespace vitrail::kernels {

// In groups.  The metadata of a row precedes its K groups, which begin at a multiple of `alignment`.
constexpr int64_t kMetadataGroups = sizeof(QuantizationParams) / sizeof(int32_t);
inline int64_t first_quantized_row(int64_t alignment) { return round_up(kMetadataGroups, alignment); }
inline int64_t quantized_row_stride(int64_t k_groups, int64_t alignment) {
  return round_up(k_groups + kMetadataGroups, alignment);
}

inline QuantizationParams load_metadata(const int32_t* row) {
  QuantizationParams params;
  std::memcpy(&params, row - kMetadataGroups, sizeof(params));
  return params;
}
inline void store_metadata(int32_t* row, const QuantizationParams& params) {
  std::memcpy(row - kMetadataGroups, &params, sizeof(params));
}

inline bool contains(const TwoTermRows& rows, int64_t row) {
  return rows.stride > 0 && row >= rows.first && (row - rows.first) % rows.stride == 0;
}
// The number of these rows before `row`.
inline int64_t count_before(const TwoTermRows& rows, int64_t row) {
  return rows.stride > 0 && row > rows.first ? (row - rows.first - 1) / rows.stride + 1 : 0;
}
// The same rows, counted from `row` on, without those before it.
inline TwoTermRows starting_at(const TwoTermRows& rows, int64_t row) {
  if (rows.stride <= 0 || row <= rows.first) return {rows.first - row, rows.stride};
  return {(rows.stride - (row - rows.first) % rows.stride) % rows.stride, rows.stride};
}

// Slots of quantised rows, ordered by blocks of rows: first a block's rows, then the low terms of its two-term rows, so
// that these are further rows of the same register tiles.
class QuantizedRows {
 public:
  // blocking.max: of a block with its low terms, at most kLargestBlockRows.
  QuantizedRows(int64_t rows, const TwoTermRows& two_term, const RowBlocking& blocking)
      : rows_(rows),
        two_term_(two_term),
        block_(kernels::block_rows(rows, max_rows(two_term.stride, blocking.max), blocking.tile)) {}

  int64_t block_rows() const { return block_; }
  int64_t num_slots() const { return rows_ + count_before(two_term_, rows_); }
  bool has_low_term(int64_t row) const { return contains(two_term_, row); }
  int64_t slot(int64_t row) const { return row + count_before(two_term_, row / block_ * block_); }
  int64_t low_term_slot(int64_t row) const {
    return std::min(row / block_ * block_ + block_, rows_) + count_before(two_term_, row);
  }
  TwoTermRows two_term_from(int64_t row) const { return starting_at(two_term_, row); }

 private:
  // An n with n + ⌈n / stride⌉ ≤ max_slots.
  static int64_t max_rows(int64_t stride, int64_t max_slots) {
    return stride > 0 ? (max_slots - 1) * stride / (stride + 1) : max_slots;
  }

  int64_t rows_;
  TwoTermRows two_term_;
  int64_t block_;
};

}  // namespace vitrail::kernels
