// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/deformable_attention.h"

#include "vitrail/kernels/attention/deformable_attention.h"
#include "vitrail/ops/operation.h"

namespace vitrail::ops {
namespace {

using Levels = std::vector<std::array<int64_t, 2>>;

struct SamplingSizes {
  int64_t batch, cells, heads, head_dim, queries, points;
  Levels levels;

  template <class T>
  kernels::DeformableAttentionArgs<T> args(const T* values, const T* locations, const T* weights) const {
    return {batch, queries, heads, head_dim, points, levels, values, locations, weights};
  }
};

SamplingSizes checked(const Tensor& values, const Tensor& locations, const Tensor& weights, const Levels& levels) {
  int64_t cells = 0;
  bool empty = levels.empty();
  for (const auto& [height, width] : levels) {
    empty = empty || height < 1 || width < 1;
    cells += height * width;
  }
  if (empty) throw Error("deformable_attention", "one or more maps with sides from 1", str(levels.size(), " maps"));
  if (values.rank() != 4 || values.size(1) != cells) {
    throw Error("deformable_attention", str("values [B, ", cells, ", H, d], the cells of all maps"),
                values.shape().to_string());
  }
  const int64_t batch = values.size(0), heads = values.size(2), count = static_cast<int64_t>(levels.size());
  if (locations.rank() != 6 || locations.size(4) < 1 ||
      !(locations.shape() == Shape{batch, locations.size(1), heads, count, locations.size(4), 2})) {
    throw Error("deformable_attention", str("locations [", batch, ", Q, ", heads, ", ", count, ", P, 2]"),
                locations.shape().to_string());
  }
  const int64_t queries = locations.size(1), points = locations.size(4);
  const Shape expected{batch, queries, heads, count, points};
  if (!(weights.shape() == expected))
    throw Error("deformable_attention", str("weights ", expected), weights.shape().to_string());
  return {batch, cells, heads, values.size(3), queries, points, levels};
}

// Elements [first, first + size) of the `all` along an axis.
std::string onnx_part(OnnxGraph& graph, const std::string& x, int64_t axis, int64_t first, int64_t size, int64_t all) {
  return size == all ? x : graph.slice(x, {axis}, {first}, {first + size});
}

// The sum over the points of map `level`, whose first cell is `first`: [B·H, d, Q].  The attributes of GridSample are
// its defaults, whose names differ between opsets.
std::string onnx_level(OnnxGraph& graph, const std::array<std::string, 3>& in, const SamplingSizes& n, int64_t level,
                       int64_t first) {
  const auto [height, width] = n.levels[static_cast<size_t>(level)];
  const auto count = static_cast<int64_t>(n.levels.size());
  const std::string cells =
      graph.transpose(onnx_part(graph, in[0], 1, first, height * width, n.cells), {0, 2, 3, 1});  // [B, H, d, h·w]
  const std::string maps = graph.reshape(cells, {-1, n.head_dim, height, width});
  const std::string places =
      graph.reshape(onnx_part(graph, in[1], 3, level, 1, count), {-1, n.queries, n.heads, n.points, 2});
  const std::string doubled = graph.node("Mul", {graph.transpose(places, {0, 2, 1, 3, 4}), graph.scalar(2)});
  const std::string grid =
      graph.reshape(graph.node("Sub", {doubled, graph.scalar(1)}), {-1, n.queries, n.points, 2});  // −1 to 1
  const std::string shares =
      graph.reshape(onnx_part(graph, in[2], 3, level, 1, count), {-1, n.queries, n.heads, n.points});
  const std::string weights = graph.reshape(graph.transpose(shares, {0, 2, 1, 3}), {-1, 1, n.queries, n.points});
  const std::string weighted = graph.node("Mul", {graph.node("GridSample", {maps, grid}), weights});
  return graph.node("ReduceSum", {weighted, graph.constant(Ints{3})}, {{"keepdims", int64_t{0}}});
}

std::string onnx_deformable_attention(OnnxValues& onnx, const Tensors& in, const SamplingSizes& n) {
  OnnxGraph& graph = onnx.graph();
  const std::array<std::string, 3> values{onnx.value_of(in[0]), onnx.value_of(in[1]), onnx.value_of(in[2])};
  std::string sum;
  int64_t first = 0;
  for (size_t level = 0; level < n.levels.size(); ++level) {
    const std::string part = onnx_level(graph, values, n, static_cast<int64_t>(level), first);
    sum = sum.empty() ? part : graph.node("Add", {sum, part});
    first += n.levels[level][0] * n.levels[level][1];
  }
  return graph.transpose(graph.reshape(sum, {-1, n.heads * n.head_dim, n.queries}), {0, 2, 1});
}

}  // namespace

Tensor deformable_attention(const Tensor& values, const Tensor& locations, const Tensor& weights,
                            const Levels& levels) {
  const SamplingSizes n = checked(values, locations, weights, levels);
  return apply({.name = "deformable_attention",
                .shape = {n.batch, n.queries, n.heads * n.head_dim},
                .kernel =
                    [n](auto in, auto out) {
                      kernels::deformable_attention(n.args(in[0].data, in[1].data, in[2].data), out[0].data);
                    },
                .gradient =
                    [n](const Tensors& in, const Tensors&) {
                      return backward_kernel(in, in, [n](auto from, auto grads) {
                        kernels::deformable_attention_backward(n.args(from[1].data, from[2].data, from[3].data),
                                                               from[0].data, grads[0].data, grads[1].data,
                                                               grads[2].data);
                      });
                    },
                .flops = 2.0 * 4 * static_cast<double>(weights.numel() * n.head_dim),
                .onnx = [n](OnnxValues& onnx, const Tensors& in,
                            const Tensors&) { return onnx_deformable_attention(onnx, in, n); }},
               {values, locations, weights});
}

}  // namespace vitrail::ops
