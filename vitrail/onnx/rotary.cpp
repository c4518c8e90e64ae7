// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/error.h"
#include "vitrail/onnx/lowering_internal.h"

namespace vitrail::onnx {
namespace {

// The factors of x and of x with the values of each pair exchanged, [1, N, 1, H or 1, d]: a · cos − b · sin and
// b · cos + a · sin.  The prefix is not rotated.
struct Factors {
  Tensor own, other;
};

Factors factors_of(const Tensor& table, int64_t tokens, kernels::RotaryPairs pairs) {
  const int64_t heads = table.size(1), rows = table.size(2), dim = table.size(3), half = dim / 2;
  const Shape shape{1, tokens, 1, heads, dim};
  const Factors result{Tensor::full(shape, 1), Tensor::zeros(shape)};
  const Tensor values = table.contiguous();
  const int64_t step = pairs == kernels::RotaryPairs::halves ? 1 : 2, second = step == 1 ? half : 1;
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t row = 0; row < rows; ++row) {
      const float* from = values.data<float>() + (head * rows + row) * dim;
      const int64_t at = ((tokens - rows + row) * heads + head) * dim;
      for (int64_t i = 0; i < half; ++i) {
        const int64_t a = at + i * step, b = a + second;
        result.own.data<float>()[a] = result.own.data<float>()[b] = from[i];
        result.other.data<float>()[a] = -from[half + i];
        result.other.data<float>()[b] = from[half + i];
      }
    }
  }
  return result;
}

}  // namespace

// qkv [B, N, 3·H·d]: rotates q and k.
std::string Lowering::rotary(const ops::Operation& operation) {
  const Tensor &qkv = operation.inputs[0], &table = operation.inputs[1];
  if (table.is_meta() || table.size(0) != 1) {
    throw Error("ONNX", "rotary tables of parameters", table.is_meta() ? "a computed table" : "a table per image");
  }
  const int64_t tokens = qkv.size(1), heads = operation.attributes.heads, dim = table.size(3);
  auto& known = rotary_factors_[{table.storage().get(), table.offset()}];
  if (known.own.empty()) {
    const Factors factors = factors_of(table, tokens, operation.attributes.pairs);
    known = {graph_.constant(factors.own, "rotary_cos"), graph_.constant(factors.other, "rotary_sin")};
    alive_.push_back(table);
  }
  const std::string parts = graph_.reshape(value_of(qkv), {-1, tokens, 3, heads, dim});
  const std::string qk = graph_.slice(parts, {2}, {0}, {2}), v = graph_.slice(parts, {2}, {2}, {3});
  const bool halves = operation.attributes.pairs == kernels::RotaryPairs::halves;
  const std::string pairs = graph_.reshape(qk, {-1, halves ? 2 : dim / 2, halves ? dim / 2 : 2});
  const std::string exchanged =
      graph_.node("Gather", {pairs, graph_.constant(Ints{1, 0})}, {{"axis", int64_t{halves ? 1 : 2}}});
  const std::string other = graph_.reshape(exchanged, {-1, tokens, 2, heads, dim});
  const std::string rotated =
      graph_.node("Add", {graph_.node("Mul", {qk, known.own}), graph_.node("Mul", {other, known.other})});
  return graph_.reshape(graph_.node("Concat", {rotated, v}, {{"axis", int64_t{2}}}), {-1, tokens, 3 * heads * dim});
}

}  // namespace vitrail::onnx
