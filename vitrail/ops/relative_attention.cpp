// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/relative_attention.h"

#include <algorithm>

#include "vitrail/base/parallel.h"
#include "vitrail/kernels/attention/attention.h"
#include "vitrail/ops/attention.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/embedding.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/operation.h"

namespace vitrail::ops {
namespace {

using kernels::HeadView;

struct Sizes {
  int64_t batch, heads, head_dim, rows, columns;
  double scale;

  int64_t tokens() const { return rows * columns; }
  int64_t width() const { return heads * head_dim; }
};

Sizes checked(const Tensor& qkv, int64_t heads, double scale, const Tensor& row_table, const Tensor& column_table,
              std::array<int64_t, 2> grid) {
  const bool fits = heads > 0 && grid[0] > 0 && grid[1] > 0 && qkv.rank() == 3 && qkv.size(1) == grid[0] * grid[1] &&
                    qkv.size(2) % (3 * heads) == 0;
  if (!fits) {
    throw Error("relative_self_attention", str("qkv [B, ", grid[0], "·", grid[1], ", 3·", heads, "·d]"),
                qkv.shape().to_string());
  }
  const int64_t dim = qkv.size(2) / (3 * heads);
  const Shape row_shape{2 * grid[0] - 1, dim}, column_shape{2 * grid[1] - 1, dim};
  if (!(row_table.shape() == row_shape) || !(column_table.shape() == column_shape)) {
    throw Error("relative_self_attention", str("tables ", row_shape, " and ", column_shape),
                str(row_table.shape(), " and ", column_table.shape()));
  }
  return {qkv.size(0), heads, dim, grid[0], grid[1], scale};
}

// The i-th part of qkv or of its gradient.
template <class T>
HeadView<T> head_view(T* qkv, const Sizes& n, int64_t part) {
  return {qkv + part * n.width(), n.tokens() * 3 * n.width(), n.head_dim, 3 * n.width()};
}

void forward(const float* qkv, const float* row_table, const float* column_table, float* out, const Sizes& n,
             kernels::Precision precision) {
  kernels::attention({.batch = n.batch,
                      .heads = n.heads,
                      .queries = n.tokens(),
                      .keys = n.tokens(),
                      .head_dim = n.head_dim,
                      .q = head_view(qkv, n, 0),
                      .k = head_view(qkv, n, 1),
                      .v = head_view(qkv, n, 2),
                      .out = {out, n.tokens() * n.width(), n.head_dim, n.width()},
                      .scale = static_cast<float>(n.scale),
                      .positions = {n.rows, n.columns, row_table, column_table},
                      .precision = precision});
}

// Floats of the scores of some rows of queries that are computed at once.
constexpr int64_t kScoreFloats = 1 << 18;

// The backward pass of one head of one sample.
class HeadBackward {
 public:
  HeadBackward(const Sizes& n, const float* row_table, const float* column_table)
      : n_(n),
        rows_at_once_(std::clamp<int64_t>(kScoreFloats / (n.columns * n.tokens()), 1, n.rows)),
        row_table_(row_table),
        column_table_(column_offsets() * n.head_dim),
        row_scores_(n.tokens() * row_offsets()),
        column_scores_(n.tokens() * column_offsets()),
        row_grads_(row_scores_.size()),
        column_grads_(column_scores_.size()),
        bias_(rows_at_once_ * n.columns * n.tokens()),
        score_grads_(bias_.size()),
        key_grads_(n.tokens() * n.head_dim),
        value_grads_(key_grads_.size()) {
    copy_reversed(column_table, column_table_.data());
  }

  // q, k, v: the head's parts of qkv, as `strided` rows; likewise their gradients, which are written.
  void run(const float* qkv, const float* grad, float* grad_qkv, float* grad_row_table, float* grad_column_table) {
    const int64_t ld = 3 * n_.width(), dim = n_.head_dim, tokens = n_.tokens();
    kernels::gemm(false, true, tokens, row_offsets(), dim, qkv, ld, row_table_, dim, false, row_scores_.data(),
                  row_offsets());
    kernels::gemm(false, true, tokens, column_offsets(), dim, qkv, ld, column_table_.data(), dim, false,
                  column_scores_.data(), column_offsets());
    std::fill(row_grads_.begin(), row_grads_.end(), 0.0f);
    std::fill(column_grads_.begin(), column_grads_.end(), 0.0f);
    for (int64_t t = 0; t < tokens; ++t) {
      std::fill_n(grad_qkv + t * ld + n_.width(), dim, 0.0f);
      std::fill_n(grad_qkv + t * ld + 2 * n_.width(), dim, 0.0f);
    }
    for (int64_t y = 0; y < n_.rows; y += rows_at_once_) {
      grid_rows(y, std::min(rows_at_once_, n_.rows - y), qkv, grad, grad_qkv);
    }
    kernels::gemm(false, false, tokens, dim, row_offsets(), row_grads_.data(), row_offsets(), row_table_, dim, true,
                  grad_qkv, ld);
    kernels::gemm(false, false, tokens, dim, column_offsets(), column_grads_.data(), column_offsets(),
                  column_table_.data(), dim, true, grad_qkv, ld);
    kernels::gemm(true, false, row_offsets(), dim, tokens, row_grads_.data(), row_offsets(), qkv, ld, false,
                  grad_row_table, dim);
    std::vector<float> reversed(column_table_.size());
    kernels::gemm(true, false, column_offsets(), dim, tokens, column_grads_.data(), column_offsets(), qkv, ld, false,
                  reversed.data(), dim);
    copy_reversed(reversed.data(), grad_column_table);
  }

 private:
  int64_t row_offsets() const { return 2 * n_.rows - 1; }
  int64_t column_offsets() const { return 2 * n_.columns - 1; }

  // The column table has its distances in descending order here, so that those of adjacent keys are adjacent.
  void copy_reversed(const float* from, float* to) const {
    for (int64_t i = 0; i < column_offsets(); ++i) {
      std::copy_n(from + i * n_.head_dim, n_.head_dim, to + (column_offsets() - 1 - i) * n_.head_dim);
    }
  }

  // For each query in rows of the grid and each row of keys: fn(place of the row's first score in the tile, place in
  // row_scores_, place of the first key's in column_scores_).
  template <class Fn>
  void for_key_rows(int64_t first, int64_t count, const Fn& fn) const {
    for (int64_t y = first; y < first + count; ++y) {
      for (int64_t x = 0; x < n_.columns; ++x) {
        const int64_t query = y * n_.columns + x, tile = query - first * n_.columns;
        const int64_t column = query * column_offsets() + n_.columns - 1 - x;
        for (int64_t v = 0; v < n_.rows; ++v) {
          fn((tile * n_.rows + v) * n_.columns, query * row_offsets() + y - v + n_.rows - 1, column);
        }
      }
    }
  }

  void add_biases(int64_t y, int64_t count) {
    for_key_rows(y, count, [&](int64_t at, int64_t row, int64_t column) {
      const float of_row = row_scores_[row];
      for (int64_t u = 0; u < n_.columns; ++u) bias_[at + u] = of_row + column_scores_[column + u];
    });
  }

  void add_score_grads(int64_t y, int64_t count) {
    for_key_rows(y, count, [&](int64_t at, int64_t row, int64_t column) {
      float sum = 0;
      for (int64_t u = 0; u < n_.columns; ++u) sum += score_grads_[at + u];
      for (int64_t u = 0; u < n_.columns; ++u) column_grads_[column + u] += score_grads_[at + u];
      row_grads_[row] += sum;
    });
  }

  // The queries of some rows of the grid; the gradients of keys and values are added to.
  void grid_rows(int64_t y, int64_t count, const float* qkv, const float* grad, float* grad_qkv) {
    const int64_t ld = 3 * n_.width(), dim = n_.head_dim, tokens = n_.tokens(), first = y * n_.columns;
    add_biases(y, count);
    const HeadView<const float> q{qkv + first * ld, 0, 0, ld}, k{qkv + n_.width(), 0, 0, ld},
        v{qkv + 2 * n_.width(), 0, 0, ld};
    kernels::attention_backward({.forward = {.batch = 1,
                                             .heads = 1,
                                             .queries = count * n_.columns,
                                             .keys = tokens,
                                             .head_dim = dim,
                                             .q = q,
                                             .k = k,
                                             .v = v,
                                             .scale = static_cast<float>(n_.scale),
                                             .bias = {bias_.data(), 0, 0, tokens}},
                                 .grad = {grad + first * n_.width(), 0, 0, n_.width()},
                                 .grad_q = {grad_qkv + first * ld, 0, 0, ld},
                                 .grad_k = {key_grads_.data(), 0, 0, dim},
                                 .grad_v = {value_grads_.data(), 0, 0, dim},
                                 .grad_scores = score_grads_.data()});
    for (int64_t t = 0; t < tokens; ++t) {
      float* const to = grad_qkv + t * ld;
      for (int64_t e = 0; e < dim; ++e) {
        to[n_.width() + e] += key_grads_[t * dim + e];
        to[2 * n_.width() + e] += value_grads_[t * dim + e];
      }
    }
    add_score_grads(y, count);
  }

  Sizes n_;
  int64_t rows_at_once_;
  const float* row_table_;
  std::vector<float> column_table_;                                           // in reversed order
  std::vector<float> row_scores_, column_scores_, row_grads_, column_grads_;  // [tokens, offsets]
  std::vector<float> bias_, score_grads_;       // [queries, tokens], for some rows of the grid
  std::vector<float> key_grads_, value_grads_;  // [tokens, head_dim], from these queries
};

// The gradients of qkv and of both tables.  Heads are independent; the tables' gradients are added in their order.
std::vector<Tensor> backward(const Tensor& qkv, const Tensor& row_table, const Tensor& column_table, const Tensor& grad,
                             const Sizes& n) {
  const int64_t pairs = n.batch * n.heads, row_floats = row_table.numel(), column_floats = column_table.numel();
  const Tensor grad_qkv = Tensor::empty(qkv.shape());
  std::vector<float> row_grads(pairs * row_floats), column_grads(pairs * column_floats);
  parallel_for(0, pairs, 1, [&](int64_t first, int64_t last) {
    HeadBackward head(n, row_table.data<float>(), column_table.data<float>());
    for (int64_t pair = first; pair < last; ++pair) {
      const int64_t token = pair / n.heads * n.tokens(), column = pair % n.heads * n.head_dim;
      head.run(qkv.data<float>() + token * 3 * n.width() + column, grad.data<float>() + token * n.width() + column,
               grad_qkv.data<float>() + token * 3 * n.width() + column, row_grads.data() + pair * row_floats,
               column_grads.data() + pair * column_floats);
    }
  });
  const Tensor grad_rows = Tensor::zeros(row_table.shape()), grad_columns = Tensor::zeros(column_table.shape());
  for (int64_t pair = 0; pair < pairs; ++pair) {
    for (int64_t i = 0; i < row_floats; ++i) grad_rows.data<float>()[i] += row_grads[pair * row_floats + i];
    for (int64_t i = 0; i < column_floats; ++i) grad_columns.data<float>()[i] += column_grads[pair * column_floats + i];
  }
  return {grad_qkv, grad_rows, grad_columns};
}

// Row i of the result [length, length, d] has the table's rows for the distances i − 0, i − 1, ….
Tensor distances(const Tensor& table) {
  const int64_t length = (table.size(0) + 1) / 2;
  const Tensor ids = Tensor::empty({length, length}, DType::i64);
  for (int64_t i = 0; i < length * length; ++i) ids.data<int64_t>()[i] = i / length - i % length + length - 1;
  return embedding(ids, table);
}

// q [B, H, rows, columns, d] times the table of an axis (2 or 3) → [B, H, rows, columns, length of the axis].
Tensor axis_scores(const Tensor& q, const Tensor& table, int axis) {
  const Tensor keys = distances(table).transpose(1, 2);  // [length, d, length]
  const Tensor first = axis == 2 ? q.permute({2, 0, 1, 3, 4}) : q.permute({3, 0, 1, 2, 4});
  const Tensor scores = matmul(first.reshape({first.size(0), -1, first.size(4)}), keys)
                            .view({first.size(0), first.size(1), first.size(2), first.size(3), keys.size(2)});
  return axis == 2 ? scores.permute({1, 2, 0, 3, 4}) : scores.permute({1, 2, 3, 0, 4});
}

// The formula in differentiable operations, for f64.
Tensor reference(const Tensor& qkv, const Tensor& row_table, const Tensor& column_table, const Sizes& n) {
  const Tensor parts = qkv.view({n.batch, n.tokens(), 3, n.heads, n.head_dim});
  auto part = [&](int i) { return parts.select(2, i).permute({0, 2, 1, 3}); };
  const Tensor q = part(0).contiguous().view({n.batch, n.heads, n.rows, n.columns, n.head_dim});
  const Tensor down = axis_scores(q, row_table, 2).unsqueeze(5), across = axis_scores(q, column_table, 3).unsqueeze(4);
  const Tensor bias = add(down, across).reshape({n.batch, n.heads, n.tokens(), n.tokens()});
  return attention(part(0), part(1), part(2), n.scale, bias).out;
}

// table [2 · n − 1, d] → its row for each query position and key position, [n, d, n].
std::string onnx_table(OnnxValues& onnx, const Tensor& table, int64_t positions) {
  const Tensor rows = table.to(DType::f32);
  Tensor result = Tensor::empty({positions, rows.size(1), positions});
  for (int64_t query = 0; query < positions; ++query) {
    for (int64_t key = 0; key < positions; ++key)
      result.select(0, query).select(1, key).copy_(rows.select(0, query - key + positions - 1));
  }
  return onnx.graph().constant(result, onnx.name_of_constant(table));
}

// q [B, H, N, d], unscaled → q · rows[y − v] + q · columns[x − u], [B, H, rows, columns, rows, columns].
std::string onnx_relative_scores(OnnxValues& onnx, const Tensor& q, const std::vector<Tensor>& in, const Sizes& n) {
  OnnxGraph& graph = onnx.graph();
  const std::string by_row = graph.reshape(onnx.value_of(q), {-1, n.heads, n.rows, n.columns, n.head_dim});
  const std::string by_column = graph.transpose(by_row, {0, 1, 3, 2, 4});
  const std::string row_scores = graph.node("MatMul", {by_row, onnx_table(onnx, in[1], n.rows)});
  const std::string column_scores =
      graph.transpose(graph.node("MatMul", {by_column, onnx_table(onnx, in[2], n.columns)}), {0, 1, 3, 2, 4});
  return graph.node("Add", {graph.reshape(row_scores, {-1, n.heads, n.rows, n.columns, n.rows, 1}),
                            graph.reshape(column_scores, {-1, n.heads, n.rows, n.columns, 1, n.columns})});
}

// Self-attention with decomposed relative positions (Li et al. 2022, "MViTv2", eq. 4).
std::string onnx_attention(OnnxValues& onnx, const std::vector<Tensor>& in, const Sizes& n) {
  OnnxGraph& graph = onnx.graph();
  const Tensor parts = in[0].view({in[0].size(0), n.tokens(), 3, n.heads, n.head_dim}).permute({2, 0, 3, 1, 4});
  const Tensor q = parts.select(0, 0), k = parts.select(0, 1), v = parts.select(0, 2);  // [B, H, N, d]
  const std::string scaled = graph.node("Mul", {onnx.value_of(q), graph.scalar(n.scale)});
  const std::string products = graph.node("MatMul", {scaled, onnx.value_of(k.transpose(2, 3))});
  const std::string scores =
      graph.node("Add", {graph.reshape(products, {-1, n.heads, n.rows, n.columns, n.rows, n.columns}),
                         onnx_relative_scores(onnx, q, in, n)});
  const std::string weights =
      graph.node("Softmax", {graph.reshape(scores, {-1, n.heads, n.tokens(), n.tokens()})}, {{"axis", int64_t{-1}}});
  const std::string attended = graph.node("MatMul", {weights, onnx.value_of(v)});
  return graph.reshape(graph.transpose(attended, {0, 2, 1, 3}), {-1, n.tokens(), n.width()});
}

}  // namespace

Tensor relative_self_attention(const Tensor& qkv, int64_t heads, double scale, const Tensor& row_table,
                               const Tensor& column_table, std::array<int64_t, 2> grid) {
  const Sizes n = checked(qkv, heads, scale, row_table, column_table, grid);
  const Shape shape{n.batch, n.tokens(), n.width()};
  if (!symbolic({qkv}) && qkv.dtype() == DType::f64) return reference(qkv, row_table, column_table, n);
  const auto in_precision = [n](kernels::Precision precision) {
    return [n, precision](std::span<const View<const float>> in, std::span<const View<float>> out) {
      forward(in[0].data, in[1].data, in[2].data, out[0].data, n, precision);
    };
  };
  const auto tokens = static_cast<double>(n.tokens()), distances = static_cast<double>(n.rows + n.columns);
  return apply({.name = "relative_self_attention",
                .shape = shape,
                .kernel = in_precision(kernels::Precision::fp32),
                .half_kernel = in_precision(kernels::Precision::half),
                .gradient = [n](const Tensors& in, const Tensors&) -> Backward {
                  return [n, in](const Tensor& grad) {
                    return backward(in[0], in[1], in[2], prepared(grad, DType::f32), n);
                  };
                },
                .flops = static_cast<double>(n.batch * n.width()) * tokens*(4 * tokens + 4 * distances),
                .onnx = [n](OnnxValues& onnx, const auto& in, const auto&) { return onnx_attention(onnx, in, n); }},
               {qkv, row_table, column_table});
}

}  // namespace vitrail::ops
