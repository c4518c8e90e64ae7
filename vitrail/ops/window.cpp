// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/window.h"

#include <algorithm>
#include <array>

#include "vitrail/autograd/variable.h"
#include "vitrail/base/parallel.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/ops/custom_internal.h"
#include "vitrail/ops/dispatch_internal.h"

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
void partition(const T* map, const T* fill, T* windows, const Windows& w) {
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

}  // namespace

Tensor window_partition(const Tensor& x, int64_t window, const Tensor& fill) {
  if (x.rank() != 4 || window < 1) {
    throw Error("window_partition", "a map [B, h, w, C] and a window of at least 1", str(x.shape(), ", ", window));
  }
  const Windows w{x.size(0), x.size(1), x.size(2), x.size(3), window};
  if (fill.defined() && !(fill.shape() == Shape{w.channels})) {
    throw Error("window_partition", str("a fill [", w.channels, "]"), fill.shape().to_string());
  }
  if (symbolic({&x})) {
    return recorded_custom("window_partition", {x, fill}, w.shape(),
                           [w](const float* const* in, float* const* out) { partition(in[0], in[1], out[0], w); }, 0,
                           {}, {.height = window, .width = window});
  }
  const DType dtype = compute_dtype(x, "window_partition");
  const Tensor xc = prepared(x, dtype), fc = prepared(fill, dtype);
  Tensor result = Tensor::empty(w.shape(), dtype);
  dispatch_compute(dtype, [&](auto tag) {
    using T = decltype(tag);
    partition<T>(xc.data<T>(), data_or_null<T>(fc), result.data<T>(), w);
  });
  result = result.to(x.dtype());
  if (autograd::recording({x, fill})) {
    autograd::record(result, "window_partition", {x, fill}, [w, dtype, filled = fill.defined()](const Tensor& grad) {
      const Tensor g = prepared(grad, dtype), grad_x = Tensor::empty(w.map_shape(), dtype);
      const Tensor grad_fill = filled ? Tensor::empty({w.channels}, dtype) : Tensor();
      dispatch_compute(dtype, [&](auto tag) {
        using T = decltype(tag);
        unpartition<T>(g.data<T>(), grad_x.data<T>(), w);
        if (filled) fill_gradient<T>(g.data<T>(), grad_fill.data<T>(), w);
      });
      return std::vector<Tensor>{grad_x, grad_fill};
    });
  }
  return result;
}

Tensor window_unpartition(const Tensor& windows, int64_t window, int64_t height, int64_t width) {
  const Windows one{1, height, width, windows.rank() == 3 ? windows.size(2) : 0, window};
  const bool sizes = windows.rank() == 3 && window > 0 && height > 0 && width > 0;
  if (!sizes || windows.size(1) != window * window || windows.size(0) % (one.down() * one.across()) != 0) {
    throw Error("window_unpartition", str("windows of ", window, "×", window, " of a map of ", height, "×", width),
                windows.shape().to_string());
  }
  const Windows w{windows.size(0) / (one.down() * one.across()), height, width, one.channels, window};
  if (symbolic({&windows})) {
    return recorded_custom("window_unpartition", {windows}, w.map_shape(),
                           [w](const float* const* in, float* const* out) { unpartition(in[0], out[0], w); }, 0, {},
                           {.height = window, .width = window});
  }
  const DType dtype = compute_dtype(windows, "window_unpartition");
  const Tensor wc = prepared(windows, dtype);
  Tensor result = Tensor::empty(w.map_shape(), dtype);
  dispatch_compute(dtype, [&](auto tag) {
    using T = decltype(tag);
    unpartition<T>(wc.data<T>(), result.data<T>(), w);
  });
  result = result.to(windows.dtype());
  if (autograd::recording({windows})) {
    autograd::record(result, "window_unpartition", {windows}, [w, dtype](const Tensor& grad) {
      const Tensor g = prepared(grad, dtype), grad_windows = Tensor::empty(w.shape(), dtype);
      dispatch_compute(dtype, [&](auto tag) {
        using T = decltype(tag);
        partition<T>(g.data<T>(), nullptr, grad_windows.data<T>(), w);
      });
      return std::vector<Tensor>{grad_windows};
    });
  }
  return result;
}

}  // namespace vitrail::ops
