// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/max_pool.h"

#include <algorithm>
#include <array>

#include "vitrail/base/parallel.h"
#include "vitrail/ops/operation.h"

namespace vitrail::ops {
namespace {

struct PooledMap {
  int64_t batch, height, width, channels;

  Shape pooled() const { return {batch, height / 2, width / 2, channels}; }

  // Calls fn(place of a pooled cell, places of its four cells), in values, pooled rows in parallel.
  template <class Fn>
  void for_cells(const Fn& fn) const {
    const int64_t rows = height / 2, columns = width / 2;
    parallel_for(0, batch * rows, 1, [&](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; ++row) {
        const int64_t upper = (row / rows * height + row % rows * 2) * width, lower = upper + width;
        for (int64_t x = 0; x < columns; ++x) {
          const int64_t left = 2 * x, right = left + 1;
          fn((row * columns + x) * channels, std::array{(upper + left) * channels, (upper + right) * channels,
                                                        (lower + left) * channels, (lower + right) * channels});
        }
      }
    });
  }
};

template <class T>
void pool_forward(const T* x, T* y, const PooledMap& map) {
  map.for_cells([=, channels = map.channels](int64_t to, const std::array<int64_t, 4>& from) {
    for (int64_t c = 0; c < channels; ++c) {
      const T upper = std::max(x[from[0] + c], x[from[1] + c]), lower = std::max(x[from[2] + c], x[from[3] + c]);
      y[to + c] = std::max(upper, lower);
    }
  });
}

template <class T>
void pool_backward(const T* grad, const T* x, T* grad_x, const PooledMap& map) {
  std::fill_n(grad_x, map.batch * map.height * map.width * map.channels, T(0));
  map.for_cells([=, channels = map.channels](int64_t at, const std::array<int64_t, 4>& cells) {
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t* const largest = std::max_element(cells.data(), cells.data() + cells.size(),
                                                      [&](int64_t a, int64_t b) { return x[a + c] < x[b + c]; });
      grad_x[*largest + c] = grad[at + c];
    }
  });
}

}  // namespace

Tensor max_pool_2x2(const Tensor& x) {
  if (x.rank() != 4 || x.size(1) < 2 || x.size(2) < 2)
    throw Error("max_pool_2x2", "a map [B, h, w, C] of at least 2×2 cells", x.shape().to_string());
  const PooledMap map{x.size(0), x.size(1), x.size(2), x.size(3)};
  return apply({.name = "max_pool_2x2",
                .shape = map.pooled(),
                .kernel = [map](auto in, auto out) { pool_forward(in[0].data, out[0].data, map); },
                .gradient =
                    [map](const auto& in, const auto&) {
                      return backward_kernel(in, {in[0]}, [map](auto from, auto grads) {
                        pool_backward(from[0].data, from[1].data, grads[0].data, map);
                      });
                    },
                .plain_loop = true,
                .onnx =
                    [](OnnxValues& onnx, const auto& in, const auto&) {
                      OnnxGraph& graph = onnx.graph();
                      const std::string planes = graph.transpose(onnx.value_of(in[0]), {0, 3, 1, 2});
                      const std::string pooled =
                          graph.node("MaxPool", {planes}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
                      return graph.transpose(pooled, {0, 2, 3, 1});
                    }},
               {x});
}

}  // namespace vitrail::ops
