// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/window.h"

#include <algorithm>
#include <type_traits>

#include "vitrail/base/parallel.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/ops/operation.h"

namespace vitrail::ops {
namespace {

struct Windows {
  int64_t batch, height, width, channels, window;

  int64_t down() const { return ceil_div(height, window); }
  int64_t across() const { return ceil_div(width, window); }
  Shape map_shape() const { return {batch, height, width, channels}; }
  Shape shape() const { return {batch * down() * across(), window * window, channels}; }

  // Calls fn(row of the windows, row of the map, or −1 for a cell outside it) for all rows, in parallel.
  template <class Fn>
  void for_cells(const Fn& fn) const {
    const int64_t cells = window * window, per_image = down() * across();
    parallel_for(0, batch * per_image * cells, 1 + 16384 / (channels + 1), [&](int64_t first, int64_t last) {
      for (int64_t at = first; at < last; ++at) {
        const int64_t n = at / cells, cell = at % cells, place = n % per_image;
        const int64_t y = place / across() * window + cell / window, x = place % across() * window + cell % window;
        fn(at, y < height && x < width ? (n / per_image * height + y) * width + x : -1);
      }
    });
  }
};

template <class T>
void partition(const T* map, std::type_identity_t<const T*> fill, T* windows, const Windows& w) {
  const int64_t channels = w.channels;
  w.for_cells([=](int64_t to, int64_t from) {
    if (from >= 0) {
      std::copy_n(map + from * channels, channels, windows + to * channels);
    } else if (fill) {
      std::copy_n(fill, channels, windows + to * channels);
    } else {
      std::fill_n(windows + to * channels, channels, T(0));
    }
  });
}

template <class T>
void unpartition(const T* windows, T* map, const Windows& w) {
  const int64_t channels = w.channels;
  w.for_cells([=](int64_t from, int64_t to) {
    if (to >= 0) std::copy_n(windows + from * channels, channels, map + to * channels);
  });
}

// The gradient of the fill: the sum over the cells outside the map, in their order.
template <class T>
void fill_gradient(const T* grad, T* sum, const Windows& w) {
  const ThreadCount serial(1);
  std::fill_n(sum, w.channels, T(0));
  w.for_cells([&](int64_t cell, int64_t from) {
    for (int64_t c = 0; from < 0 && c < w.channels; ++c) sum[c] += grad[cell * w.channels + c];
  });
}

// x with cells of the value `fill` [C], 0 if it is undefined, on the right and below.
std::string onnx_padded(OnnxValues& onnx, const std::string& x, const Tensor& fill, const Ints& pads) {
  OnnxGraph& graph = onnx.graph();
  const auto padded = [&](const std::string& map) { return graph.node("Pad", {map, graph.constant(pads)}); };
  if (!fill.defined()) return padded(x);
  // Pad has one value for all channels.  The fill is the bias of a linear layer, which is added after the padding.
  const std::string value = onnx.value_of(fill);
  return graph.node("Add", {padded(onnx.difference(x, value)), value});
}

std::string onnx_partition(OnnxValues& onnx, const Tensor& map, const Tensor& fill, const Windows& w) {
  OnnxGraph& graph = onnx.graph();
  const int64_t below = w.down() * w.window - w.height, right = w.across() * w.window - w.width;
  std::string x = onnx.value_of(map);
  if (below > 0 || right > 0) x = onnx_padded(onnx, x, fill, {0, 0, 0, 0, 0, below, right, 0});
  x = graph.reshape(x, {-1, w.down(), w.window, w.across(), w.window, w.channels});
  return graph.reshape(graph.transpose(x, {0, 1, 3, 2, 4, 5}), {-1, w.window * w.window, w.channels});
}

std::string onnx_unpartition(OnnxValues& onnx, const Tensor& windows, const Windows& w) {
  OnnxGraph& graph = onnx.graph();
  const int64_t height = w.down() * w.window, width = w.across() * w.window;
  std::string x = graph.reshape(onnx.value_of(windows), {-1, w.down(), w.across(), w.window, w.window, w.channels});
  x = graph.reshape(graph.transpose(x, {0, 1, 3, 2, 4, 5}), {-1, height, width, w.channels});
  if (height == w.height && width == w.width) return x;
  return graph.slice(x, {1, 2}, {0, 0}, {w.height, w.width});
}

}  // namespace

Tensor window_partition(const Tensor& x, int64_t window, const Tensor& fill) {
  if (x.rank() != 4 || window < 1) {
    throw Error("window_partition", "a map [B, h, w, C] and a window of at least 1", str(x.shape(), ", ", window));
  }
  const Windows w{x.size(0), x.size(1), x.size(2), x.size(3), window};
  if (fill.defined() && !(fill.shape() == Shape{w.channels})) {
    throw Error("window_partition", str("a fill [", w.channels, "]"), fill.shape().to_string());
  }
  return apply(
      {.name = "window_partition",
       .shape = w.shape(),
       .kernel = [w](auto in, auto out) { partition(in[0].data, in[1].data, out[0].data, w); },
       .gradient =
           [w](const auto& in, const auto&) {
             return backward_kernel(in, {}, [w](auto from, auto grads) {
               unpartition(from[0].data, grads[0].data, w);
               if (grads[1].data) fill_gradient(from[0].data, grads[1].data, w);
             });
           },
       .onnx = [w](OnnxValues& onnx, const auto& in, const auto&) { return onnx_partition(onnx, in[0], in[1], w); }},
      {x, fill});
}

Tensor window_unpartition(const Tensor& windows, int64_t window, int64_t height, int64_t width) {
  const Windows one{1, height, width, windows.rank() == 3 ? windows.size(2) : 0, window};
  const bool sizes = windows.rank() == 3 && window > 0 && height > 0 && width > 0;
  if (!sizes || windows.size(1) != window * window || windows.size(0) % (one.down() * one.across()) != 0) {
    throw Error("window_unpartition", str("windows of ", window, "×", window, " of a map of ", height, "×", width),
                windows.shape().to_string());
  }
  const Windows w{windows.size(0) / (one.down() * one.across()), height, width, one.channels, window};
  return apply(
      {.name = "window_unpartition",
       .shape = w.map_shape(),
       .kernel = [w](auto in, auto out) { unpartition(in[0].data, out[0].data, w); },
       .gradient =
           [w](const auto& in, const auto&) {
             return backward_kernel(in, {},
                                    [w](auto from, auto grads) { partition(from[0].data, nullptr, grads[0].data, w); });
           },
       .onnx = [w](OnnxValues& onnx, const auto& in, const auto&) { return onnx_unpartition(onnx, in[0], w); }},
      {windows});
}

}  // namespace vitrail::ops
