// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/convolution.h"

#include <algorithm>

#include "vitrail/autograd/variable.h"
#include "vitrail/base/parallel.h"
#include "vitrail/ops/custom_internal.h"
#include "vitrail/ops/dispatch_internal.h"

namespace vitrail::ops {
namespace {

constexpr int64_t kTaps = 9;

struct Map {
  int64_t batch, height, width, channels;
};

// Calls fn(cell, tap, neighbour or −1) for the nine taps of all cells, cells in parallel.
template <class Fn>
void for_neighbours(const Map& map, const Fn& fn) {
  parallel_for(0, map.batch * map.height, 1, [&](int64_t first, int64_t last) {
    for (int64_t cell = first * map.width; cell < last * map.width; ++cell) {
      const int64_t x = cell % map.width, y = cell / map.width % map.height;
      for (int64_t tap = 0; tap < kTaps; ++tap) {
        const int64_t dy = tap / 3 - 1, dx = tap % 3 - 1;
        const bool inside = y + dy >= 0 && y + dy < map.height && x + dx >= 0 && x + dx < map.width;
        fn(cell, tap, inside ? cell + dy * map.width + dx : -1);
      }
    }
  });
}

template <class T>
void unfold_forward(const T* x, T* y, const Map& map) {
  const int64_t channels = map.channels;
  for_neighbours(map, [=](int64_t cell, int64_t tap, int64_t neighbour) {
    T* const to = y + cell * kTaps * channels + tap;
    const T* const from = x + neighbour * channels;
    for (int64_t c = 0; c < channels; ++c) to[c * kTaps] = neighbour < 0 ? T(0) : from[c];
  });
}

// As a gather, so that cells are independent: the tap of this cell in the neighbourhood of its neighbour is 8 − tap.
template <class T>
void unfold_backward(const T* grad, T* grad_x, const Map& map) {
  const int64_t channels = map.channels;
  for_neighbours(map, [=](int64_t cell, int64_t tap, int64_t neighbour) {
    T* const to = grad_x + cell * channels;
    if (tap == 0) std::fill_n(to, channels, T(0));
    if (neighbour < 0) return;
    const T* const from = grad + neighbour * kTaps * channels + (kTaps - 1 - tap);
    for (int64_t c = 0; c < channels; ++c) to[c] += from[c * kTaps];
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

}  // namespace

Tensor unfold_3x3(const Tensor& x) {
  check_map(x, "unfold_3x3");
  const Map map{x.size(0), x.size(1), x.size(2), x.size(3)};
  const Shape shape{map.batch, map.height, map.width, kTaps * map.channels};
  if (symbolic({&x})) {
    return recorded_custom("unfold_3x3", {x}, shape,
                           [map](const float* const* in, float* const* out) { unfold_forward(in[0], out[0], map); });
  }
  const DType dtype = compute_dtype(x, "unfold_3x3");
  const Tensor xc = prepared(x, dtype);
  Tensor result = Tensor::empty(shape, dtype);
  dispatch_compute(dtype, [&](auto tag) {
    using T = decltype(tag);
    unfold_forward<T>(xc.data<T>(), result.data<T>(), map);
  });
  result = result.to(x.dtype());
  if (autograd::recording({x})) {
    autograd::record(result, "unfold_3x3", {x}, [map, dtype, to = x.shape()](const Tensor& grad) {
      const Tensor g = prepared(grad, dtype), grad_x = Tensor::empty(to, dtype);
      dispatch_compute(dtype, [&](auto tag) {
        using T = decltype(tag);
        unfold_backward<T>(g.data<T>(), grad_x.data<T>(), map);
      });
      return std::vector<Tensor>{grad_x};
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
