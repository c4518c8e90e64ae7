// SPDX-License-Identifier: Apache-2.0
#pragma once
// Loops over rows of strided views.
#include <algorithm>
#include <array>

#include "vitrail/base/parallel.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

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
template <class T>
void copy_rows(const T* from, const Tensor& from_view, T* to, const Tensor& to_view) {
  const int64_t cols = to_view.size(-1), from_stride = from_view.strides().back();
  for_rows<2>(to_view.shape(), {from_view.strides(), to_view.strides()}, [&](const auto& at) {
    const T* source = from + at[0];
    T* target = to + at[1];
    if (from_stride == 1) {
      std::copy_n(source, cols, target);
    } else {
      for (int64_t c = 0; c < cols; ++c) target[c] = source[c * from_stride];
    }
  });
}

// to = op(a, b), with a and b broadcast to the shape of `to`.
template <class T, class Op>
void combine_rows(const T* a, const Tensor& a_view, const T* b, const Tensor& b_view, T* to, const Tensor& to_view,
                  Op op) {
  const Tensor left = a_view.expand(to_view.shape()), right = b_view.expand(to_view.shape());
  const int64_t cols = to_view.size(-1), a_stride = left.strides().back(), b_stride = right.strides().back();
  for_rows<3>(to_view.shape(), {left.strides(), right.strides(), to_view.strides()}, [&](const auto& at) {
    const T *const x = a + at[0], *const y = b + at[1];
    T* const result = to + at[2];
    if (a_stride == 1 && b_stride == 1) {  // vectorised by the compiler
      for (int64_t c = 0; c < cols; ++c) result[c] = op(x[c], y[c]);
    } else {
      for (int64_t c = 0; c < cols; ++c) result[c] = op(x[c * a_stride], y[c * b_stride]);
    }
  });
}

}  // namespace vitrail::ops
