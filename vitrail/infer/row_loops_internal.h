// SPDX-License-Identifier: Apache-2.0
#pragma once
// Loops over rows of strided views: the steps of a program that need no kernel.
#include <array>
#include <cstring>

#include "vitrail/base/parallel.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::infer {

// Calls fn(offsets of a row in each tensor) for all rows (all axes but the last), in parallel.
template <size_t N, class Fn>
void for_rows(const Shape& shape, const std::array<Shape, N>& strides, Fn fn) {
  const int64_t cols = shape.back(), rows = cols ? shape.numel() / cols : 0;
  parallel_for(0, rows, 16, [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      std::array<int64_t, N> offsets{};
      int64_t remaining = row;
      for (int axis = shape.rank() - 2; axis >= 0; --axis) {
        const int64_t index = remaining % shape[axis];
        remaining /= shape[axis];
        for (size_t n = 0; n < N; ++n) offsets[n] += index * strides[n][axis];
      }
      fn(offsets);
    }
  });
}

// to = from.  Both views have the same shape, and the last axis of `to` is contiguous.
inline void copy_rows(const float* from, const Tensor& from_view, float* to, const Tensor& to_view) {
  const int64_t cols = to_view.size(-1), from_stride = from_view.strides().back();
  for_rows<2>(to_view.shape(), {from_view.strides(), to_view.strides()}, [&](const auto& at) {
    const float* source = from + at[0];
    float* target = to + at[1];
    if (from_stride == 1) {
      std::memcpy(target, source, static_cast<size_t>(cols) * sizeof(float));
    } else {
      for (int64_t c = 0; c < cols; ++c) target[c] = source[c * from_stride];
    }
  });
}

// to = op(a, b), with a and b broadcast to the shape of `to`.
template <class Op>
void combine_rows(const float* a, const Tensor& a_view, const float* b, const Tensor& b_view, float* to,
                  const Tensor& to_view, Op op) {
  const Tensor left = a_view.expand(to_view.shape()), right = b_view.expand(to_view.shape());
  const int64_t cols = to_view.size(-1), a_stride = left.strides().back(), b_stride = right.strides().back();
  for_rows<3>(to_view.shape(), {left.strides(), right.strides(), to_view.strides()}, [&](const auto& at) {
    const float *const x = a + at[0], *const y = b + at[1];
    float* const result = to + at[2];
    if (a_stride == 1 && b_stride == 1) {  // vectorised by the compiler
      for (int64_t c = 0; c < cols; ++c) result[c] = op(x[c], y[c]);
    } else {
      for (int64_t c = 0; c < cols; ++c) result[c] = op(x[c * a_stride], y[c * b_stride]);
    }
  });
}

// [outer, length, inner] → the mean over `length` [outer, inner].  The last axis is contiguous.
inline void mean_rows(const float* from, const Tensor& view, float* to) {
  const int64_t outer = view.size(0), length = view.size(1), inner = view.size(2);
  const Shape strides = view.strides();
  parallel_for(0, outer, 1, [&](int64_t first, int64_t last) {
    for (int64_t o = first; o < last; ++o) {
      float* sum = to + o * inner;
      std::memset(sum, 0, static_cast<size_t>(inner) * sizeof(float));
      for (int64_t l = 0; l < length; ++l) {
        const float* row = from + o * strides[0] + l * strides[1];
        for (int64_t i = 0; i < inner; ++i) sum[i] += row[i];
      }
      for (int64_t i = 0; i < inner; ++i) sum[i] /= static_cast<float>(length);
    }
  });
}

}  // namespace vitrail::infer
