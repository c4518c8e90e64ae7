// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/resize.h"

#include <algorithm>

#include "vitrail/base/parallel.h"
#include "vitrail/ops/operation.h"

namespace vitrail::ops {
namespace {

struct ResizeSizes {
  int64_t planes, from_height, from_width, height, width;
};

// A target position is low·(1 − part) + high·part.
template <class T>
struct Taps {
  std::vector<int64_t> low, high;
  std::vector<T> part;

  Taps(int64_t from, int64_t to) {
    const T scale = static_cast<T>(from) / static_cast<T>(to);  // in T, as torch
    for (int64_t i = 0; i < to; ++i) {
      const T at = std::max(T(0), scale * (static_cast<T>(i) + T(0.5)) - T(0.5));
      low.push_back(std::min(static_cast<int64_t>(at), from - 1));
      high.push_back(std::min(low.back() + 1, from - 1));
      part.push_back(std::clamp(at - static_cast<T>(low.back()), T(0), T(1)));
    }
  }
};

// The two source rows of a target row, interpolated along the columns.  The next target row often has the same.
template <class T>
class InterpolatedRows {
 public:
  explicit InterpolatedRows(const Taps<T>& columns) : columns_(columns) {
    for (Row& row : rows_) row.values.resize(columns.part.size());
  }

  void set(const T* top, const T* below) {
    if (rows_[1].source == top) std::swap(rows_[0], rows_[1]);
    interpolate(top, rows_[0]);
    interpolate(below, rows_[1]);
  }
  const T* top() const { return rows_[0].values.data(); }
  const T* below() const { return rows_[1].values.data(); }

 private:
  struct Row {
    const T* source = nullptr;
    std::vector<T> values;
  };

  void interpolate(const T* from, Row& row) {
    if (row.source == from) return;
    row.source = from;
    for (size_t c = 0; c < row.values.size(); ++c) {
      const T across = columns_.part[c];
      row.values[c] = (1 - across) * from[columns_.low[c]] + across * from[columns_.high[c]];
    }
  }

  const Taps<T>& columns_;
  Row rows_[2];
};

template <class T>
void resize_forward(const T* x, T* y, const ResizeSizes& n) {
  const Taps<T> rows(n.from_height, n.height), columns(n.from_width, n.width);
  parallel_for(0, n.planes * n.height, 1 + 65536 / n.width, [&](int64_t first, int64_t last) {
    InterpolatedRows<T> interpolated(columns);
    for (int64_t at = first; at < last; ++at) {
      const int64_t row = at % n.height;
      const T* const plane = x + at / n.height * n.from_height * n.from_width;
      interpolated.set(plane + rows.low[row] * n.from_width, plane + rows.high[row] * n.from_width);
      const T *const top = interpolated.top(), *const below = interpolated.below(), down = rows.part[row];
      T* const to = y + at * n.width;
      for (int64_t c = 0; c < n.width; ++c) to[c] = (1 - down) * top[c] + down * below[c];
    }
  });
}

template <class T>
void resize_backward(const T* grad, T* grad_x, const ResizeSizes& n) {
  const Taps<T> rows(n.from_height, n.height), columns(n.from_width, n.width);
  const int64_t plane_size = n.from_height * n.from_width;
  parallel_for(0, n.planes, 1, [&](int64_t first, int64_t last) {
    std::fill(grad_x + first * plane_size, grad_x + last * plane_size, T(0));
    for (int64_t at = first * n.height; at < last * n.height; ++at) {
      const int64_t row = at % n.height;
      T* const plane = grad_x + at / n.height * plane_size;
      T *const top = plane + rows.low[row] * n.from_width, *const below = plane + rows.high[row] * n.from_width;
      for (int64_t c = 0; c < n.width; ++c) {
        const T g = grad[at * n.width + c], down = rows.part[row], across = columns.part[c];
        top[columns.low[c]] += (1 - down) * (1 - across) * g;
        top[columns.high[c]] += (1 - down) * across * g;
        below[columns.low[c]] += down * (1 - across) * g;
        below[columns.high[c]] += down * across * g;
      }
    }
  });
}

}  // namespace

Tensor resize_bilinear(const Tensor& x, int64_t height, int64_t width) {
  if (x.rank() < 2 || x.size(-1) < 1 || x.size(-2) < 1 || height < 1 || width < 1) {
    throw Error("resize_bilinear", "a map [..., h, w] and a target, all sizes at least 1",
                str(x.shape(), " to ", height, "×", width));
  }
  Shape shape = x.shape();
  shape[x.rank() - 2] = height;
  shape[x.rank() - 1] = width;
  const ResizeSizes n{x.numel() / (x.size(-1) * x.size(-2)), x.size(-2), x.size(-1), height, width};
  return apply({.name = "resize_bilinear",
                .shape = shape,
                .kernel = [n](auto in, auto out) { resize_forward(in[0].data, out[0].data, n); },
                .gradient =
                    [n](const auto& in, const auto&) {
                      return backward_kernel(
                          in, {}, [n](auto from, auto grads) { resize_backward(from[0].data, grads[0].data, n); });
                    }},
               {x});
}

}  // namespace vitrail::ops
