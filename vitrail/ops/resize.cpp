// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/resize.h"

#include <algorithm>

#include "vitrail/base/parallel.h"
#include "vitrail/ops/operation.h"

namespace vitrail::ops {
namespace {

// Maps [planes, h, w, channels].
struct ResizeSizes {
  int64_t planes, from_height, from_width, height, width;
  int64_t channels = 1;
  Corners corners = Corners::half_pixel;
};

// A target position is low·(1 − part) + high·part.
template <class T>
struct Taps {
  std::vector<int64_t> low, high;
  std::vector<T> part;

  Taps(int64_t from, int64_t to, Corners corners) {  // in T, as torch
    const bool aligned = corners == Corners::aligned;
    const T scale = !aligned ? static_cast<T>(from) / static_cast<T>(to)
                    : to > 1 ? static_cast<T>(from - 1) / static_cast<T>(to - 1)
                             : T(0);
    for (int64_t i = 0; i < to; ++i) {
      const auto index = static_cast<T>(i);
      const T at = aligned ? scale * index : std::max(T(0), scale * (index + T(0.5)) - T(0.5));
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
  InterpolatedRows(const Taps<T>& columns, int64_t channels) : columns_(columns), channels_(channels) {
    for (Row& row : rows_) row.values.resize(columns.part.size() * static_cast<size_t>(channels));
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
    T* to = row.values.data();
    for (size_t column = 0; column < columns_.part.size(); ++column, to += channels_) {
      const T *const low = from + columns_.low[column] * channels_, *const high =
                                                                        from + columns_.high[column] * channels_;
      const T across = columns_.part[column];
      for (int64_t c = 0; c < channels_; ++c) to[c] = (1 - across) * low[c] + across * high[c];
    }
  }

  const Taps<T>& columns_;
  int64_t channels_;
  Row rows_[2];
};

template <class T>
void resize_forward(const T* x, T* y, const ResizeSizes& n) {
  const Taps<T> rows(n.from_height, n.height, n.corners), columns(n.from_width, n.width, n.corners);
  const int64_t from_row = n.from_width * n.channels, to_row = n.width * n.channels;
  parallel_for(0, n.planes * n.height, 1 + 65536 / to_row, [&](int64_t first, int64_t last) {
    InterpolatedRows<T> interpolated(columns, n.channels);
    for (int64_t at = first; at < last; ++at) {
      const int64_t row = at % n.height;
      const T* const plane = x + at / n.height * n.from_height * from_row;
      interpolated.set(plane + rows.low[row] * from_row, plane + rows.high[row] * from_row);
      const T *const top = interpolated.top(), *const below = interpolated.below(), down = rows.part[row];
      T* const to = y + at * to_row;
      for (int64_t c = 0; c < to_row; ++c) to[c] = (1 - down) * top[c] + down * below[c];
    }
  });
}

template <class T>
void resize_backward(const T* grad, T* grad_x, const ResizeSizes& n) {
  const Taps<T> rows(n.from_height, n.height, n.corners), columns(n.from_width, n.width, n.corners);
  const int64_t from_row = n.from_width * n.channels, plane_size = n.from_height * from_row;
  parallel_for(0, n.planes, 1, [&](int64_t first, int64_t last) {
    std::fill(grad_x + first * plane_size, grad_x + last * plane_size, T(0));
    for (int64_t at = first * n.height; at < last * n.height; ++at) {
      const int64_t row = at % n.height;
      T* const plane = grad_x + at / n.height * plane_size;
      T *const top = plane + rows.low[row] * from_row, *const below = plane + rows.high[row] * from_row;
      for (int64_t i = 0; i < n.width * n.channels; ++i) {
        const int64_t column = i / n.channels, c = i % n.channels;
        const int64_t low = columns.low[column] * n.channels + c, high = columns.high[column] * n.channels + c;
        const T g = grad[at * n.width * n.channels + i], down = rows.part[row], across = columns.part[column];
        top[low] += (1 - down) * (1 - across) * g;
        top[high] += (1 - down) * across * g;
        below[low] += down * (1 - across) * g;
        below[high] += down * across * g;
      }
    }
  });
}

// Resizes the last two of four axes or, with channels last, the second and third.
std::string onnx_resize(OnnxValues& onnx, const Tensor& x, const ResizeSizes& n, bool channels_last) {
  OnnxGraph& graph = onnx.graph();
  std::string map = onnx.value_of(x);
  if (channels_last) map = graph.transpose(map, {0, 3, 1, 2});
  const std::string leading = graph.node("Shape", {map}, {{"start", int64_t{0}}, {"end", int64_t{2}}});
  const std::string sizes =
      graph.node("Concat", {leading, graph.constant(Ints{n.height, n.width})}, {{"axis", int64_t{0}}});
  const char* corners = n.corners == Corners::aligned ? "align_corners" : "half_pixel";
  map = graph.node("Resize", {map, "", "", sizes},
                   {{"mode", std::string("linear")}, {"coordinate_transformation_mode", std::string(corners)}});
  return channels_last ? graph.transpose(map, {0, 2, 3, 1}) : map;
}

Tensor resize(const char* name, const Tensor& x, const Shape& shape, const ResizeSizes& n, bool channels_last) {
  return apply({.name = name,
                .shape = shape,
                .kernel = [n](auto in, auto out) { resize_forward(in[0].data, out[0].data, n); },
                .gradient =
                    [n](const auto& in, const auto&) {
                      return backward_kernel(
                          in, {}, [n](auto from, auto grads) { resize_backward(from[0].data, grads[0].data, n); });
                    },
                .onnx =
                    [n, channels_last](OnnxValues& onnx, const auto& in, const auto&) {
                      if (in[0].rank() != 4) throw Error("ONNX", "maps with four axes", in[0].shape().to_string());
                      return onnx_resize(onnx, in[0], n, channels_last);
                    }},
               {x});
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
  return resize("resize_bilinear", x, shape,
                {x.numel() / (x.size(-1) * x.size(-2)), x.size(-2), x.size(-1), height, width}, false);
}

Tensor resize_map(const Tensor& x, int64_t height, int64_t width, Corners corners) {
  if (x.rank() != 4 || x.numel() == 0 || height < 1 || width < 1) {
    throw Error("resize_map", "a map [B, h, w, C] and a target, all sizes at least 1",
                str(x.shape(), " to ", height, "×", width));
  }
  return resize("resize_map", x, {x.size(0), height, width, x.size(3)},
                {x.size(0), x.size(1), x.size(2), height, width, x.size(3), corners}, true);
}

}  // namespace vitrail::ops
