// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/rotary.h"

#include <cmath>

#include "vitrail/autograd/variable.h"
#include "vitrail/base/parallel.h"
#include "vitrail/ops/operation.h"

namespace vitrail::ops {
namespace {

void check(const Tensor& qkv, const Tensor& table, int64_t heads) {
  if (qkv.rank() != 3 || heads < 1 || qkv.size(2) % (3 * heads) != 0) {
    throw Error("rotary", str("qkv [B, N, 3·", heads, "·d]"), qkv.shape().to_string());
  }
  const int64_t dim = qkv.size(2) / (3 * heads);
  const bool fits = table.rank() == 4 && (table.size(0) == 1 || table.size(0) == qkv.size(0)) &&
                    (table.size(1) == 1 || table.size(1) == heads) && table.size(2) <= qkv.size(1) &&
                    table.size(3) == dim && dim % 2 == 0;
  if (!fits) {
    throw Error("rotary",
                str("a table [B or 1, H or 1, P, d] of an even d, for qkv ", qkv.shape(), " of ", heads, " heads"),
                table.shape().to_string());
  }
}

// The arguments of the kernel without x, y and the values of the table.
template <class T>
kernels::RotaryArgsOf<T> args_of(const Shape& qkv, const Tensor& table, int64_t heads, RotaryPairs pairs) {
  const Shape& strides = table.strides();
  return {.batch = qkv[0],
          .tokens = qkv[1],
          .heads = heads,
          .head_dim = table.size(3),
          .prefix = qkv[1] - table.size(2),
          .table_batch_stride = table.size(0) == 1 ? 0 : strides[0],
          .table_head_stride = table.size(1) == 1 ? 0 : strides[1],
          .pairs = pairs};
}

template <class T>
void rotate(const View<const T>& x, const View<const T>& table, T* y, int64_t heads, RotaryPairs pairs, bool inverse) {
  kernels::RotaryArgsOf<T> args = args_of<T>(x.tensor->shape(), *table.tensor, heads, pairs);
  args.x = x.data;
  args.table = table.data;
  args.y = y;
  args.inverse = inverse;
  kernels::rotary(args);
}

// The gradients of a head's cosines and sines, added to `to`: ga · a + gb · b, and gb · a − ga · b.
template <class T>
void add_table_gradient(const T* x, const T* grad, int64_t dim, RotaryPairs pairs, T* to) {
  const int64_t half = dim / 2, step = pairs == RotaryPairs::halves ? 1 : 2,
                second = pairs == RotaryPairs::halves ? half : 1;
  for (int64_t i = 0; i < half; ++i) {
    const int64_t a = i * step, b = a + second;
    to[i] += grad[a] * x[a] + grad[b] * x[b];
    to[half + i] += grad[b] * x[a] - grad[a] * x[b];
  }
}

// Summed over what shares a row of the table.  Threads own rows, so the sums do not depend on their number.
template <class T>
Tensor table_gradient(const Tensor& x, const Tensor& grad, const Tensor& table, int64_t heads, RotaryPairs pairs) {
  const Tensor result = Tensor::zeros(table.shape(), table.dtype());
  const kernels::RotaryArgsOf<T> args = args_of<T>(x.shape(), result, heads, pairs);
  const int64_t dim = args.head_dim, row = 3 * heads * dim;
  parallel_for(0, table.size(2), 1, [&](int64_t first, int64_t last) {
    for (int64_t token = first; token < last; ++token) {
      for (int64_t sample = 0; sample < args.batch; ++sample) {
        const int64_t at = (sample * args.tokens + args.prefix + token) * row;
        for (int64_t head = 0; head < 2 * heads; ++head) {  // the heads of q, then of k
          T* const to =
              result.data<T>() + sample * args.table_batch_stride + head % heads * args.table_head_stride + token * dim;
          add_table_gradient(x.data<T>() + at + head * dim, grad.data<T>() + at + head * dim, dim, pairs, to);
        }
      }
    }
  });
  return result;
}

// angles [rows, half] → their cosines and sines [rows, 2, half]
template <class T>
void table_of(const T* angles, T* table, int64_t rows, int64_t half) {
  for (int64_t at = 0; at < rows * half; ++at) {
    T* const to = table + at / half * 2 * half + at % half;
    to[0] = std::cos(angles[at]);
    to[half] = std::sin(angles[at]);
  }
}

template <class T>
void table_of_backward(const T* table, const T* grad, T* grad_angles, int64_t rows, int64_t half) {
  for (int64_t at = 0; at < rows * half; ++at) {
    const int64_t cos = at / half * 2 * half + at % half;
    grad_angles[at] = grad[cos + half] * table[cos] - grad[cos] * table[cos + half];
  }
}

// The factors of x and of x with the values of each pair exchanged, [1, N, 1, H or 1, d]: a · cos − b · sin and
// b · cos + a · sin.  The prefix is not rotated.
struct OnnxFactors {
  Tensor own, other;
};

OnnxFactors onnx_factors(const Tensor& table, int64_t tokens, RotaryPairs pairs) {
  const int64_t heads = table.size(1), rows = table.size(2), dim = table.size(3), half = dim / 2;
  const Shape shape{1, tokens, 1, heads, dim};
  const OnnxFactors result{Tensor::full(shape, 1), Tensor::zeros(shape)};
  const Tensor values = table.contiguous();
  const int64_t step = pairs == RotaryPairs::halves ? 1 : 2, second = step == 1 ? half : 1;
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

// qkv [B, N, 3·H·d]: rotates q and k.
std::string onnx_rotary(OnnxValues& onnx, const Tensor& qkv, const Tensor& table, int64_t heads, RotaryPairs pairs) {
  if (table.is_meta() || table.size(0) != 1) {
    throw Error("ONNX", "rotary tables of parameters", table.is_meta() ? "a computed table" : "a table per image");
  }
  OnnxGraph& graph = onnx.graph();
  const int64_t tokens = qkv.size(1), dim = table.size(3);
  const std::string own =
      onnx.derived_constant(table, "rotary_cos", [&] { return onnx_factors(table, tokens, pairs).own; });
  const std::string exchanged_factor =
      onnx.derived_constant(table, "rotary_sin", [&] { return onnx_factors(table, tokens, pairs).other; });
  const std::string parts = graph.reshape(onnx.value_of(qkv), {-1, tokens, 3, heads, dim});
  const std::string qk = graph.slice(parts, {2}, {0}, {2}), v = graph.slice(parts, {2}, {2}, {3});
  const bool halves = pairs == RotaryPairs::halves;
  const std::string in_pairs = graph.reshape(qk, {-1, halves ? 2 : dim / 2, halves ? dim / 2 : 2});
  const std::string exchanged =
      graph.node("Gather", {in_pairs, graph.constant(Ints{1, 0})}, {{"axis", int64_t{halves ? 1 : 2}}});
  const std::string other = graph.reshape(exchanged, {-1, tokens, 2, heads, dim});
  const std::string rotated =
      graph.node("Add", {graph.node("Mul", {qk, own}), graph.node("Mul", {other, exchanged_factor})});
  return graph.reshape(graph.node("Concat", {rotated, v}, {{"axis", int64_t{2}}}), {-1, tokens, 3 * heads * dim});
}

}  // namespace

Tensor rotary_table(const Tensor& angles) {
  if (angles.rank() < 1) throw Error("rotary_table", "angles [..., d/2]", "a scalar");
  Shape shape = angles.shape();
  const int64_t half = shape.back(), rows = rows_of(angles);
  shape[angles.rank() - 1] = 2 * half;
  return apply({.name = "rotary_table",
                .shape = shape,
                .kernel = [=](auto in, auto out) { table_of(in[0].data, out[0].data, rows, half); },
                .gradient =
                    [=](const auto& in, const auto& out) {
                      return backward_kernel(in, {out[0]}, [=](auto from, auto grads) {
                        table_of_backward(from[1].data, from[0].data, grads[0].data, rows, half);
                      });
                    }},
               {angles});
}

Tensor rotary(const Tensor& qkv, const Tensor& table, int64_t heads, RotaryPairs pairs) {
  check(qkv, table, heads);
  const bool for_table = autograd::requires_grad(table);
  return apply({.name = "rotary",
                .shape = qkv.shape(),
                .kernel = [=](auto in, auto out) { rotate(in[0], in[1], out[0].data, heads, pairs, false); },
                .gradient = [=](const Tensors& in, const Tensors&) -> Backward {
                  return [=, x = for_table ? in[0] : Tensor(), table = in[1]](const Tensor& grad) {
                    const Tensor g = prepared(grad, table.dtype());
                    const Tensor grad_qkv = Tensor::empty(g.shape(), g.dtype());
                    Tensor grad_table;
                    dispatch_compute(g.dtype(), [&](auto tag) {
                      using T = decltype(tag);
                      rotate<T>({g.data<T>(), &g}, {table.data<T>(), &table}, grad_qkv.data<T>(), heads, pairs, true);
                      if (for_table) grad_table = table_gradient<T>(x, g, table, heads, pairs);
                    });
                    return Tensors{grad_qkv, grad_table};
                  };
                },
                .text = str("rotary heads=", heads),
                .keeps_token_order = true,
                .in_place = true,
                .onnx = [=](OnnxValues& onnx, const auto& in,
                            const auto&) { return onnx_rotary(onnx, in[0], in[1], heads, pairs); }},
               {qkv, table});
}

}  // namespace vitrail::ops
