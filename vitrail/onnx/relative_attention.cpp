// SPDX-License-Identifier: Apache-2.0
// Self-attention with decomposed relative positions (Li et al. 2022, "MViTv2", eq. 4) as operators.
#include "vitrail/onnx/lowering_internal.h"

namespace vitrail::onnx {

// table [2 · n − 1, d] → its row for each query position and key position, [n, d, n].
std::string Lowering::offset_table(const Tensor& table, int64_t positions) {
  const Tensor rows = table.to(DType::f32);
  Tensor result = Tensor::empty({positions, rows.size(1), positions});
  for (int64_t query = 0; query < positions; ++query) {
    for (int64_t key = 0; key < positions; ++key)
      result.select(0, query).select(1, key).copy_(rows.select(0, query - key + positions - 1));
  }
  return graph_.constant(result, name_of_constant(table));
}

// q [B, H, N, d], unscaled → q · rows[y − v] + q · columns[x − u], [B, H, rows, columns, rows, columns].
std::string Lowering::relative_scores(const Tensor& q, const ops::Operation& operation) {
  const int64_t heads = q.size(1), dim = q.size(3);
  const int64_t rows = operation.attributes.height, columns = operation.attributes.width;
  const std::string by_row = graph_.reshape(value_of(q), {-1, heads, rows, columns, dim});
  const std::string by_column = graph_.transpose(by_row, {0, 1, 3, 2, 4});
  const std::string row_scores = graph_.node("MatMul", {by_row, offset_table(operation.inputs[1], rows)});
  const std::string column_scores =
      graph_.transpose(graph_.node("MatMul", {by_column, offset_table(operation.inputs[2], columns)}), {0, 1, 3, 2, 4});
  return graph_.node("Add", {graph_.reshape(row_scores, {-1, heads, rows, columns, rows, 1}),
                             graph_.reshape(column_scores, {-1, heads, rows, columns, 1, columns})});
}

// inputs: qkv [B, N, 3 · H · d], row table, column table → [B, N, H · d]
std::string Lowering::relative_self_attention(const ops::Operation& operation) {
  const Tensor& qkv = operation.inputs[0];
  const int64_t heads = operation.attributes.heads, tokens = qkv.size(1), width = qkv.size(2) / 3;
  const int64_t rows = operation.attributes.height, columns = operation.attributes.width;
  const Tensor parts = qkv.view({qkv.size(0), tokens, 3, heads, width / heads}).permute({2, 0, 3, 1, 4});
  const Tensor q = parts.select(0, 0), k = parts.select(0, 1), v = parts.select(0, 2);  // [B, H, N, d]
  const std::string scaled = graph_.node("Mul", {value_of(q), graph_.scalar(operation.attributes.scale)});
  const std::string products = graph_.node("MatMul", {scaled, value_of(k.transpose(2, 3))});
  const std::string scores = graph_.node(
      "Add", {graph_.reshape(products, {-1, heads, rows, columns, rows, columns}), relative_scores(q, operation)});
  const std::string weights =
      graph_.node("Softmax", {graph_.reshape(scores, {-1, heads, tokens, tokens})}, {{"axis", int64_t{-1}}});
  const std::string attended = graph_.node("MatMul", {weights, value_of(v)});
  return graph_.reshape(graph_.transpose(attended, {0, 2, 1, 3}), {-1, tokens, width});
}

}  // namespace vitrail::onnx
