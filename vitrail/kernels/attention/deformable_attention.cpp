// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/attention/deformable_attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/attention/deformable_attention.cpp"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/isa/vector_memory-inl.h"

#ifndef VITRAIL_KERNELS_DEFORMABLE_ATTENTION_ONCE
#define VITRAIL_KERNELS_DEFORMABLE_ATTENTION_ONCE
namespace vitrail::kernels {

template <class T>
struct WeightedCell {
  const T* values;  // [head_dim]
  T weight;
};

}  // namespace vitrail::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

// out = Σ weight · cell
void sum_cells(const WeightedCell<float>* cells, int64_t count, int64_t head_dim, float* out) {
  const hn::ScalableTag<float> d;
  for_each_vector(d, head_dim, [=](int64_t c, auto memory) HWY_ATTR {
    auto sum = hn::Zero(d);
    for (int64_t i = 0; i < count; ++i)
      sum = hn::MulAdd(hn::Set(d, cells[i].weight), memory.load(cells[i].values + c), sum);
    memory.store(sum, out + c);
  });
}

// Returns cell · grad, and adds weight · grad to grad_cell.
float cell_backward(const WeightedCell<float>& cell, const float* grad, int64_t head_dim, float* grad_cell) {
  const hn::ScalableTag<float> d;
  auto dot = hn::Zero(d);
  const auto weight = hn::Set(d, cell.weight);
  const float* const values = cell.values;
  for_each_vector(d, head_dim, [&](int64_t c, auto memory) HWY_ATTR {
    const auto g = memory.load(grad + c);
    dot = hn::MulAdd(memory.load(values + c), g, dot);
    memory.store(hn::MulAdd(weight, g, memory.load(grad_cell + c)), grad_cell + c);
  });
  return hn::GetLane(hn::SumOfLanes(d, dot));
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <cmath>
#include <vector>

#include "vitrail/base/parallel.h"

namespace vitrail::kernels {
namespace {

template <class T>
void scalar_sum_cells(const WeightedCell<T>* cells, int64_t count, int64_t head_dim, T* out) {
  std::fill_n(out, head_dim, T(0));
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t c = 0; c < head_dim; ++c) out[c] += cells[i].weight * cells[i].values[c];
  }
}

template <class T>
T scalar_cell_backward(const WeightedCell<T>& cell, const T* grad, int64_t head_dim, T* grad_cell) {
  T dot = 0;
  for (int64_t c = 0; c < head_dim; ++c) {
    dot += cell.values[c] * grad[c];
    grad_cell[c] += cell.weight * grad[c];
  }
  return dot;
}

VITRAIL_EXPORT(sum_cells, scalar_sum_cells<float>);
VITRAIL_EXPORT(cell_backward, scalar_cell_backward<float>);

constexpr int64_t kSampledValuesPerTask = 16384;

// A cell beside a location: its index in the map, its share in the value, and the derivatives of the share by x and y.
template <class T>
struct SampledCell {
  int64_t index;
  T share, by_x, by_y;
};

// Up to four cells, those inside the map.
template <class T>
struct SampledCells {
  SampledCell<T> cells[4];
  int64_t count = 0;

  SampledCells(const T* location, const std::array<int64_t, 2>& level) {
    const auto [height, width] = level;
    const T h = static_cast<T>(height), w = static_cast<T>(width);
    const T x = location[0] * w - T(0.5), y = location[1] * h - T(0.5);
    if (!(x > -1 && x < w && y > -1 && y < h)) return;
    const T left = std::floor(x), top = std::floor(y), right_share = x - left, lower_share = y - top;
    for (int64_t corner = 0; corner < 4; ++corner) {
      const int64_t right = corner % 2, lower = corner / 2;
      const int64_t column = static_cast<int64_t>(left) + right, row = static_cast<int64_t>(top) + lower;
      if (column < 0 || column >= width || row < 0 || row >= height) continue;
      const T across = right ? right_share : 1 - right_share, down = lower ? lower_share : 1 - lower_share;
      cells[count++] = {row * width + column, across * down, (right ? w : -w) * down, (lower ? h : -h) * across};
    }
  }
};

// A head of a query.
template <class T>
struct SampledHead {
  const DeformableAttentionArgs<T>& args;
  int64_t image, query, head;

  int64_t row() const { return (image * args.queries + query) * args.heads + head; }
  // The distance of the values of a cell from `values`.
  int64_t offset(int64_t cell) const { return ((image * args.cells() + cell) * args.heads + head) * args.head_dim; }
  // Calls fn(index of the sample in locations and weights, its cells, the first cell of its map).
  template <class Fn>
  void for_each_sample(const Fn& fn) const {
    int64_t first = 0, sample = row() * args.samples();
    for (const std::array<int64_t, 2>& level : args.levels) {
      for (int64_t point = 0; point < args.points; ++point, ++sample)
        fn(sample, SampledCells<T>(args.locations + 2 * sample, level), first);
      first += level[0] * level[1];
    }
  }
};

template <class T, class Sum>
void sample_maps(const DeformableAttentionArgs<T>& args, const Sum& sum, T* out) {
  const int64_t values_per_head = 4 * args.samples() * args.head_dim + 1;
  parallel_for(0, args.batch * args.queries * args.heads, 1 + kSampledValuesPerTask / values_per_head,
               [&](int64_t begin, int64_t end) {
                 std::vector<WeightedCell<T>> cells(static_cast<size_t>(4 * args.samples()));
                 for (int64_t row = begin; row < end; ++row) {
                   const int64_t query = row / args.heads;
                   const SampledHead<T> head{args, query / args.queries, query % args.queries, row % args.heads};
                   int64_t count = 0;
                   head.for_each_sample([&](int64_t sample, const SampledCells<T>& sampled, int64_t first) {
                     for (int64_t i = 0; i < sampled.count; ++i) {
                       const SampledCell<T>& cell = sampled.cells[i];
                       cells[static_cast<size_t>(count++)] = {args.values + head.offset(first + cell.index),
                                                              args.weights[sample] * cell.share};
                     }
                   });
                   sum(cells.data(), count, args.head_dim, out + row * args.head_dim);
                 }
               });
}

// Heads of an image in parallel: the queries of one add to the gradients of the same cells.
template <class T, class Cell>
void sample_maps_backward(const DeformableAttentionArgs<T>& args, const Cell& cell_gradient, const T* grad,
                          T* grad_values, T* grad_locations, T* grad_weights) {
  std::fill_n(grad_values, args.batch * args.cells() * args.heads * args.head_dim, T(0));
  parallel_for(0, args.batch * args.heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      for (int64_t query = 0; query < args.queries; ++query) {
        const SampledHead<T> head{args, at / args.heads, query, at % args.heads};
        const T* const g = grad + head.row() * args.head_dim;
        head.for_each_sample([&](int64_t sample, const SampledCells<T>& sampled, int64_t first) {
          const T weight = args.weights[sample];
          T by_weight = 0, by_x = 0, by_y = 0;
          for (int64_t i = 0; i < sampled.count; ++i) {
            const SampledCell<T>& cell = sampled.cells[i];
            const int64_t offset = head.offset(first + cell.index);
            const T dot =
                cell_gradient({args.values + offset, weight * cell.share}, g, args.head_dim, grad_values + offset);
            by_weight += cell.share * dot;
            by_x += cell.by_x * dot;
            by_y += cell.by_y * dot;
          }
          grad_weights[sample] = by_weight;
          grad_locations[2 * sample] = weight * by_x;
          grad_locations[2 * sample + 1] = weight * by_y;
        });
      }
    }
  });
}

}  // namespace

void deformable_attention(const DeformableAttentionArgs<float>& args, float* out) {
  sample_maps(args, VITRAIL_DISPATCH(sum_cells), out);
}

void deformable_attention(const DeformableAttentionArgs<double>& args, double* out) {
  sample_maps(args, scalar_sum_cells<double>, out);
}

void deformable_attention_backward(const DeformableAttentionArgs<float>& args, const float* grad, float* grad_values,
                                   float* grad_locations, float* grad_weights) {
  sample_maps_backward(args, VITRAIL_DISPATCH(cell_backward), grad, grad_values, grad_locations, grad_weights);
}

void deformable_attention_backward(const DeformableAttentionArgs<double>& args, const double* grad, double* grad_values,
                                   double* grad_locations, double* grad_weights) {
  sample_maps_backward(args, scalar_cell_backward<double>, grad, grad_values, grad_locations, grad_weights);
}

}  // namespace vitrail::kernels
#endif
