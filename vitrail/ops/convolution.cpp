// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/convolution.h"

#include <algorithm>

#include "vitrail/base/parallel.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/operation.h"

namespace vitrail::ops {
namespace {

struct Map {
  int64_t batch, height, width, channels;
};

// A neighbourhood of kernel × kernel cells for every stride-th cell of the padded map.
struct Neighbourhoods {
  Map map;
  int64_t stride = 1, kernel = 3, padding = 1;
  int64_t first_row = 0, row_count = places(map.height);  // the part of the result

  int64_t places(int64_t side) const { return (side + 2 * padding - kernel) / stride + 1; }
  int64_t taps() const { return kernel * kernel; }
  int64_t rows() const { return row_count; }
  int64_t columns() const { return places(map.width); }
  Shape result(int64_t channels) const { return {map.batch, rows(), columns(), channels}; }
};

// Calls fn(cell of the result, tap, neighbour in the map or −1) for the taps of all results, results in parallel.
template <class Fn>
void for_neighbours(const Neighbourhoods& of, const Fn& fn) {
  const int64_t height = of.map.height, width = of.map.width, columns = of.columns(), rows = of.rows();
  parallel_for(0, of.map.batch * rows, 1, [&](int64_t first, int64_t last) {
    for (int64_t cell = first * columns; cell < last * columns; ++cell) {
      const int64_t image = cell / (rows * columns);
      const int64_t y = (of.first_row + cell / columns % rows) * of.stride, x = cell % columns * of.stride;
      for (int64_t tap = 0; tap < of.taps(); ++tap) {
        const int64_t v = y + tap / of.kernel - of.padding, u = x + tap % of.kernel - of.padding;
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
      for (int64_t tap = 0; tap < of.taps(); ++tap) {
        const int64_t v = y + of.padding - tap / of.kernel, u = x + of.padding - tap % of.kernel;  // times the stride
        const int64_t row = v / of.stride - of.first_row;
        const bool read = v >= 0 && u >= 0 && v % of.stride == 0 && u % of.stride == 0 && row >= 0 && row < rows &&
                          u / of.stride < columns;
        fn(cell, tap, read ? (image * rows + row) * columns + u / of.stride : -1);
      }
    }
  });
}

template <class T>
void unfold_forward(const T* x, T* y, const Neighbourhoods& of) {
  const int64_t channels = of.map.channels, taps = of.taps();
  for_neighbours(of, [=](int64_t cell, int64_t tap, int64_t neighbour) {
    T* const to = y + cell * taps * channels + tap;
    const T* const from = x + neighbour * channels;
    for (int64_t c = 0; c < channels; ++c) to[c * taps] = neighbour < 0 ? T(0) : from[c];
  });
}

template <class T>
void unfold_backward(const T* grad, T* grad_x, const Neighbourhoods& of) {
  const int64_t channels = of.map.channels, taps = of.taps();
  for_readers(of, [=](int64_t cell, int64_t tap, int64_t reader) {
    T* const to = grad_x + cell * channels;
    if (tap == 0) std::fill_n(to, channels, T(0));
    if (reader < 0) return;
    const T* const from = grad + reader * taps * channels + tap;
    for (int64_t c = 0; c < channels; ++c) to[c] += from[c * taps];
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
  parallel_for(0, of.taps(), 1, [&](int64_t first, int64_t last) {
    for (int64_t tap = first; tap < last; ++tap) {
      T* const to = grad_weight + tap * channels;
      std::fill_n(to, channels, T(0));
      for (int64_t cell = 0; cell < of.map.batch * rows * columns; ++cell) {
        const int64_t v = cell / columns % rows * of.stride + tap / of.kernel - of.padding;
        const int64_t u = cell % columns * of.stride + tap % of.kernel - of.padding;
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

// A convolution of x [B, h, w, C].  weights: [out, C / group, kernel, kernel] and optionally the bias.
std::string onnx_convolution(OnnxValues& onnx, const Tensor& x, const std::vector<std::string>& weights,
                             const Neighbourhoods& of, int64_t group) {
  OnnxGraph& graph = onnx.graph();
  std::vector<std::string> inputs{graph.transpose(onnx.value_of(x), {0, 3, 1, 2})};
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  const std::string y = graph.node("Conv", inputs,
                                   {{"group", group},
                                    {"kernel_shape", Ints{of.kernel, of.kernel}},
                                    {"pads", Ints{of.padding, of.padding, of.padding, of.padding}},
                                    {"strides", Ints{of.stride, of.stride}}});
  return graph.transpose(y, {0, 2, 3, 1});
}

Operation unfolding(const char* name, const Neighbourhoods& of) {
  return {.name = name,
          .shape = of.result(of.taps() * of.map.channels),
          .kernel = [of](auto in, auto out) { unfold_forward(in[0].data, out[0].data, of); },
          .gradient =
              [of](const auto& in, const auto&) {
                return backward_kernel(
                    in, {}, [of](auto from, auto grads) { unfold_backward(from[0].data, grads[0].data, of); });
              }};
}

// The unfolding whose linear layer is a convolution in ONNX: its weight has the order (channel, tap) too.
Operation exported_unfolding(const char* name, const Neighbourhoods& of) {
  Operation unfold = unfolding(name, of);
  unfold.onnx = [of](OnnxValues& onnx, const auto& in, const auto& out) {
    onnx.replace_linear(out[0], [&onnx, x = in[0], of](const Tensor& weight, const Tensor& bias) {
      const Tensor kernel = weight.to(DType::f32).view({weight.size(0), x.size(3), of.kernel, of.kernel});
      std::vector<std::string> weights{onnx.value_of(kernel)};
      if (bias.defined()) weights.push_back(onnx.value_of(bias));
      return onnx_convolution(onnx, x, weights, of, 1);
    });
    return "";
  };
  return unfold;
}

}  // namespace

Tensor unfold_3x3(const Tensor& x, int64_t stride) {
  const Neighbourhoods of = neighbourhoods_of(x, stride, "unfold_3x3");
  Operation unfold = exported_unfolding("unfold_3x3", of);
  unfold.kind = OpKind::unfold;
  unfold.stride = stride;
  return apply(std::move(unfold), {x});
}

Tensor unfold(const Tensor& x, const Unfolding& how) {
  check_map(x, "unfold");
  const bool fits = how.kernel > 0 && how.stride > 0 && how.padding >= 0 && how.padding < how.kernel &&
                    std::min(x.size(1), x.size(2)) + 2 * how.padding >= how.kernel;
  if (!fits) {
    throw Error("unfold", "a kernel above its padding that fits into the padded map, and a stride of 1 or more",
                str(x.shape(), ", kernel ", how.kernel, ", stride ", how.stride, ", padding ", how.padding));
  }
  const Map map{x.size(0), x.size(1), x.size(2), x.size(3)};
  return apply(exported_unfolding("unfold", {map, how.stride, how.kernel, how.padding}), {x});
}

Tensor unfold_3x3_rows(const Tensor& x, int64_t stride, int64_t first, int64_t count) {
  Neighbourhoods of = neighbourhoods_of(x, stride, "unfold_3x3_rows");
  if (first < 0 || count < 1 || first > of.rows() - count)
    throw Error("unfold_3x3_rows", str("rows from 0 to ", of.rows() - 1), str(count, " from ", first));
  of.first_row = first;
  of.row_count = count;
  return apply(unfolding("unfold_3x3_rows", of), {x});
}

Tensor depthwise_conv_3x3(const Tensor& x, const Tensor& weight, const Tensor& bias, int64_t stride) {
  const Neighbourhoods of = neighbourhoods_of(x, stride, "depthwise_conv_3x3");
  const int64_t channels = of.map.channels;
  if (!(weight.shape() == Shape{channels, 3, 3}) || !(bias.shape() == Shape{channels})) {
    throw Error("depthwise_conv_3x3", str("a weight [", channels, ", 3, 3] and a bias [", channels, "]"),
                str(weight.shape(), " and ", bias.shape()));
  }
  const Tensor taps = contiguous(weight.view({channels, of.taps()}).transpose(0, 1));  // [9, C]
  return apply(
      {.name = "depthwise_conv_3x3",
       .shape = of.result(channels),
       .kernel = [of](auto in, auto out) { depthwise_forward(in[0].data, in[1].data, in[2].data, out[0].data, of); },
       .gradient = [of](const Tensors& in, const Tensors&) -> Backward {
         return [of, x = in[0], w = in[1]](const Tensor& grad) {
           const Tensor g = prepared(grad, x.dtype()), grad_x = Tensor::empty(x.shape(), x.dtype()),
                        grad_w = Tensor::empty(w.shape(), x.dtype());
           dispatch_compute(x.dtype(), [&](auto tag) {
             using T = decltype(tag);
             depthwise_backward_x<T>(g.data<T>(), w.data<T>(), grad_x.data<T>(), of);
             depthwise_backward_weight<T>(g.data<T>(), x.data<T>(), grad_w.data<T>(), of);
           });
           return Tensors{grad_x, grad_w, reduced_to(g, {w.size(1)})};
         };
       },
       .flops = 2.0 * static_cast<double>(of.taps() * of.result(channels).numel()),
       .onnx =
           [of, channels](OnnxValues& onnx, const auto& in, const auto&) {
             const Tensor kernel = in[1].to(DType::f32).transpose(0, 1).reshape({channels, 1, 3, 3});
             return onnx_convolution(onnx, in[0], {onnx.value_of(kernel), onnx.value_of(in[2])}, of, channels);
           }},
      {x, taps, bias});
}

Tensor pixel_shuffle(const Tensor& x, int64_t factor) {
  check_map(x, "pixel_shuffle");
  if (factor < 1 || x.size(3) % (factor * factor) != 0) {
    throw Error("pixel_shuffle", str("a number of channels that ", factor, "² divides"), x.shape().to_string());
  }
  const Map map{x.size(0), x.size(1), x.size(2), x.size(3) / (factor * factor)};
  const Shape shape{map.batch, factor * map.height, factor * map.width, map.channels};
  return apply({.name = "pixel_shuffle",
                .shape = shape,
                .kernel = [=](auto in, auto out) { shuffle<false>(in[0].data, out[0].data, map, factor); },
                .gradient =
                    [=](const auto& in, const auto&) {
                      return backward_kernel(in, {}, [=](auto from, auto grads) {
                        shuffle<true>(grads[0].data, from[0].data, map, factor);
                      });
                    },
                .onnx =
                    [=](OnnxValues& onnx, const auto& in, const auto&) {
                      OnnxGraph& graph = onnx.graph();
                      const std::string cells = graph.reshape(
                          onnx.value_of(in[0]), {-1, map.height, map.width, map.channels, factor, factor});
                      return graph.reshape(graph.transpose(cells, {0, 1, 4, 2, 5, 3}),
                                           {-1, map.height * factor, map.width * factor, map.channels});
                    }},
               {x});
}

}  // namespace vitrail::ops
