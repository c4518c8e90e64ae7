// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/convolution.h"

#include <algorithm>

#include "vitrail/autograd/variable.h"
#include "vitrail/base/parallel.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/ops/custom_internal.h"
#include "vitrail/ops/dispatch_internal.h"
#include "vitrail/ops/elementwise.h"

namespace vitrail::ops {
namespace {

constexpr int64_t kTaps = 9;

struct Map {
  int64_t batch, height, width, channels;
};

// A 3×3 neighbourhood with padding 1 around every stride-th cell.
struct Neighbourhoods {
  Map map;
  int64_t stride = 1;

  int64_t rows() const { return ceil_div(map.height, stride); }
  int64_t columns() const { return ceil_div(map.width, stride); }
  Shape result(int64_t channels) const { return {map.batch, rows(), columns(), channels}; }
};

// Calls fn(cell of the result, tap, neighbour in the map or −1) for the nine taps of all results, results in parallel.
template <class Fn>
void for_neighbours(const Neighbourhoods& of, const Fn& fn) {
  const int64_t height = of.map.height, width = of.map.width, columns = of.columns(), rows = of.rows();
  parallel_for(0, of.map.batch * rows, 1, [&](int64_t first, int64_t last) {
    for (int64_t cell = first * columns; cell < last * columns; ++cell) {
      const int64_t image = cell / (rows * columns);
      const int64_t y = cell / columns % rows * of.stride, x = cell % columns * of.stride;
      for (int64_t tap = 0; tap < kTaps; ++tap) {
        const int64_t v = y + tap / 3 - 1, u = x + tap % 3 - 1;
        const bool inside = v >= 0 && v < height && u >= 0 && u < width;
        fn(cell, tap, inside ? (image * height + v) * width + u : -1);
      }
    }
  });
}

// The inverse: calls fn(cell of the map, tap, the result that reads the cell at this tap or −1), cells in parallel.
template <class Fn>
void for_readers(const Neighbourhoods& of, const Fn& fn) {
  const int64_t height = of.map.height, width = of.map.width, columns = of.columns(), rows = of.rows();
  parallel_for(0, of.map.batch * height, 1, [&](int64_t first, int64_t last) {
    for (int64_t cell = first * width; cell < last * width; ++cell) {
      const int64_t image = cell / (height * width), y = cell / width % height, x = cell % width;
      for (int64_t tap = 0; tap < kTaps; ++tap) {
        const int64_t v = y + 1 - tap / 3, u = x + 1 - tap % 3;  // times the stride
        const bool read = v >= 0 && u >= 0 && v % of.stride == 0 && u % of.stride == 0 && v / of.stride < rows &&
                          u / of.stride < columns;
        fn(cell, tap, read ? (image * rows + v / of.stride) * columns + u / of.stride : -1);
      }
    }
  });
}

template <class T>
void unfold_forward(const T* x, T* y, const Neighbourhoods& of) {
  const int64_t channels = of.map.channels;
  for_neighbours(of, [=](int64_t cell, int64_t tap, int64_t neighbour) {
    T* const to = y + cell * kTaps * channels + tap;
    const T* const from = x + neighbour * channels;
    for (int64_t c = 0; c < channels; ++c) to[c * kTaps] = neighbour < 0 ? T(0) : from[c];
  });
}

template <class T>
void unfold_backward(const T* grad, T* grad_x, const Neighbourhoods& of) {
  const int64_t channels = of.map.channels;
  for_readers(of, [=](int64_t cell, int64_t tap, int64_t reader) {
    T* const to = grad_x + cell * channels;
    if (tap == 0) std::fill_n(to, channels, T(0));
    if (reader < 0) return;
    const T* const from = grad + reader * kTaps * channels + tap;
    for (int64_t c = 0; c < channels; ++c) to[c] += from[c * kTaps];
  });
}

// weight [9, C]
template <class T>
void depthwise_forward(const T* x, const T* weight, const T* bias, T* y, const Neighbourhoods& of) {
  const int64_t channels = of.map.channels;
  for_neighbours(of, [=](int64_t cell, int64_t tap, int64_t neighbour) {
    T* const to = y + cell * channels;
    if (tap == 0) std::copy_n(bias, channels, to);
    if (neighbour < 0) return;
    const T* const from = x + neighbour * channels;
    const T* const w = weight + tap * channels;
    for (int64_t c = 0; c < channels; ++c) to[c] += w[c] * from[c];
  });
}

template <class T>
void depthwise_backward_x(const T* grad, const T* weight, T* grad_x, const Neighbourhoods& of) {
  const int64_t channels = of.map.channels;
  for_readers(of, [=](int64_t cell, int64_t tap, int64_t reader) {
    T* const to = grad_x + cell * channels;
    if (tap == 0) std::fill_n(to, channels, T(0));
    if (reader < 0) return;
    const T* const from = grad + reader * channels;
    const T* const w = weight + tap * channels;
    for (int64_t c = 0; c < channels; ++c) to[c] += w[c] * from[c];
  });
}

// grad_weight [9, C], taps in parallel.
template <class T>
void depthwise_backward_weight(const T* grad, const T* x, T* grad_weight, const Neighbourhoods& of) {
  const int64_t channels = of.map.channels, rows = of.rows(), columns = of.columns();
  parallel_for(0, kTaps, 1, [&](int64_t first, int64_t last) {
    for (int64_t tap = first; tap < last; ++tap) {
      T* const to = grad_weight + tap * channels;
      std::fill_n(to, channels, T(0));
      for (int64_t cell = 0; cell < of.map.batch * rows * columns; ++cell) {
        const int64_t v = cell / columns % rows * of.stride + tap / 3 - 1, u = cell % columns * of.stride + tap % 3 - 1;
        if (v < 0 || v >= of.map.height || u < 0 || u >= of.map.width) continue;
        const T* const from = x + ((cell / (rows * columns) * of.map.height + v) * of.map.width + u) * channels;
        const T* const g = grad + cell * channels;
        for (int64_t c = 0; c < channels; ++c) to[c] += g[c] * from[c];
      }
    }
  });
}

// shuffled [B, f·h, f·w, C] = x [B, h, w, C·f·f], or the inverse.
template <bool inverse, class From, class To>
void shuffle(From* x, To* shuffled, const Map& map, int64_t factor) {
  const int64_t channels = map.channels, wide = map.width * factor, taps = factor * factor;
  parallel_for(0, map.batch * map.height * factor, 1, [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {  // a row of an enlarged map
      const int64_t dy = row % factor;
      for (int64_t column = 0; column < wide; ++column) {
        auto* const cell = x + (row / factor * map.width + column / factor) * channels * taps;
        auto* const small = cell + dy * factor + column % factor;
        auto* const large = shuffled + (row * wide + column) * channels;
        for (int64_t c = 0; c < channels; ++c) {
          if constexpr (inverse) {
            small[c * taps] = large[c];
          } else {
            large[c] = small[c * taps];
          }
        }
      }
    }
  });
}

void check_map(const Tensor& x, const char* where) {
  if (x.rank() != 4) throw Error(where, "a map [B, h, w, C]", x.shape().to_string());
}

Neighbourhoods neighbourhoods_of(const Tensor& x, int64_t stride, const char* where) {
  check_map(x, where);
  if (stride < 1) throw Error(where, "a stride of 1 or more", str(stride));
  return {{x.size(0), x.size(1), x.size(2), x.size(3)}, stride};
}

}  // namespace

Tensor unfold_3x3(const Tensor& x, int64_t stride) {
  const Neighbourhoods of = neighbourhoods_of(x, stride, "unfold_3x3");
  const Shape shape = of.result(kTaps * of.map.channels);
  if (symbolic({&x})) {
    return recorded_custom("unfold_3x3", {x}, shape,
                           [of](const float* const* in, float* const* out) { unfold_forward(in[0], out[0], of); }, 0,
                           {}, {.height = stride, .width = stride});
  }
  const DType dtype = compute_dtype(x, "unfold_3x3");
  const Tensor xc = prepared(x, dtype);
  Tensor result = Tensor::empty(shape, dtype);
  dispatch_compute(dtype, [&](auto tag) {
    using T = decltype(tag);
    unfold_forward<T>(xc.data<T>(), result.data<T>(), of);
  });
  result = result.to(x.dtype());
  if (autograd::recording({x})) {
    autograd::record(result, "unfold_3x3", {x}, [of, dtype, to = x.shape()](const Tensor& grad) {
      const Tensor g = prepared(grad, dtype), grad_x = Tensor::empty(to, dtype);
      dispatch_compute(dtype, [&](auto tag) {
        using T = decltype(tag);
        unfold_backward<T>(g.data<T>(), grad_x.data<T>(), of);
      });
      return std::vector<Tensor>{grad_x};
    });
  }
  return result;
}

Tensor depthwise_conv_3x3(const Tensor& x, const Tensor& weight, const Tensor& bias, int64_t stride) {
  const Neighbourhoods of = neighbourhoods_of(x, stride, "depthwise_conv_3x3");
  const int64_t channels = of.map.channels;
  if (!(weight.shape() == Shape{channels, 3, 3}) || !(bias.shape() == Shape{channels})) {
    throw Error("depthwise_conv_3x3", str("a weight [", channels, ", 3, 3] and a bias [", channels, "]"),
                str(weight.shape(), " and ", bias.shape()));
  }
  const Tensor taps = contiguous(weight.view({channels, kTaps}).transpose(0, 1));  // [9, C]
  if (symbolic({&x, &taps, &bias})) {
    const double flops = 2.0 * kTaps * static_cast<double>(of.result(channels).numel());
    return recorded_custom(
        "depthwise_conv_3x3", {x, taps, bias}, of.result(channels),
        [of](const float* const* in, float* const* out) { depthwise_forward(in[0], in[1], in[2], out[0], of); }, flops,
        {}, {.height = stride, .width = stride});
  }
  const DType dtype = compute_dtype(x, "depthwise_conv_3x3");
  const Tensor xc = prepared(x, dtype), w = prepared(taps, dtype), b = prepared(bias, dtype);
  Tensor result = Tensor::empty(of.result(channels), dtype);
  dispatch_compute(dtype, [&](auto tag) {
    using T = decltype(tag);
    depthwise_forward<T>(xc.data<T>(), w.data<T>(), b.data<T>(), result.data<T>(), of);
  });
  result = result.to(x.dtype());
  if (autograd::recording({x, taps, bias})) {
    autograd::record(result, "depthwise_conv_3x3", {x, taps, bias}, [of, dtype, xc, w](const Tensor& grad) {
      const Tensor g = prepared(grad, dtype), grad_x = Tensor::empty(xc.shape(), dtype);
      const Tensor grad_w = Tensor::empty(w.shape(), dtype);
      dispatch_compute(dtype, [&](auto tag) {
        using T = decltype(tag);
        depthwise_backward_x<T>(g.data<T>(), w.data<T>(), grad_x.data<T>(), of);
        depthwise_backward_weight<T>(g.data<T>(), xc.data<T>(), grad_w.data<T>(), of);
      });
      return std::vector<Tensor>{grad_x, grad_w, reduced_to(g, {w.size(1)})};
    });
  }
  return result;
}

Tensor pixel_shuffle(const Tensor& x, int64_t factor) {
  check_map(x, "pixel_shuffle");
  if (factor < 1 || x.size(3) % (factor * factor) != 0) {
    throw Error("pixel_shuffle", str("a number of channels that ", factor, "² divides"), x.shape().to_string());
  }
  const Map map{x.size(0), x.size(1), x.size(2), x.size(3) / (factor * factor)};
  const Shape shape{map.batch, factor * map.height, factor * map.width, map.channels};
  if (symbolic({&x})) {
    return recorded_custom("pixel_shuffle", {x}, shape, [map, factor](const float* const* in, float* const* out) {
      shuffle<false>(in[0], out[0], map, factor);
    });
  }
  const DType dtype = compute_dtype(x, "pixel_shuffle");
  const Tensor xc = prepared(x, dtype);
  Tensor result = Tensor::empty(shape, dtype);
  dispatch_compute(dtype, [&](auto tag) {
    using T = decltype(tag);
    shuffle<false>(static_cast<const T*>(xc.data<T>()), result.data<T>(), map, factor);
  });
  result = result.to(x.dtype());
  if (autograd::recording({x})) {
    autograd::record(result, "pixel_shuffle", {x}, [map, factor, dtype, to = x.shape()](const Tensor& grad) {
      const Tensor g = prepared(grad, dtype), grad_x = Tensor::empty(to, dtype);
      dispatch_compute(dtype, [&](auto tag) {
        using T = decltype(tag);
        shuffle<true>(grad_x.data<T>(), static_cast<const T*>(g.data<T>()), map, factor);
      });
      return std::vector<Tensor>{grad_x};
    });
  }
  return result;
}

}  // namespace vitrail::ops
