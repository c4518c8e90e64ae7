// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/rotary.h"

#include <cmath>

#include "vitrail/autograd/variable.h"
#include "vitrail/base/parallel.h"
#include "vitrail/ops/dispatch_internal.h"
#include "vitrail/ops/tokens.h"

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

// The arguments of the kernel without x and y.
template <class T>
kernels::RotaryArgsOf<T> args_of(const Shape& qkv, const Tensor& table, int64_t heads, RotaryPairs pairs) {
  const Shape& strides = table.strides();
  return {.batch = qkv[0],
          .tokens = qkv[1],
          .heads = heads,
          .head_dim = table.size(3),
          .prefix = qkv[1] - table.size(2),
          .table = table.data<T>(),
          .table_batch_stride = table.size(0) == 1 ? 0 : strides[0],
          .table_head_stride = table.size(1) == 1 ? 0 : strides[1],
          .pairs = pairs};
}

Tensor rotated(const Tensor& x, const Tensor& table, int64_t heads, RotaryPairs pairs, bool inverse) {
  const Tensor result = Tensor::empty(x.shape(), x.dtype());
  dispatch_compute(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    kernels::RotaryArgsOf<T> args = args_of<T>(x.shape(), table, heads, pairs);
    args.x = x.data<T>();
    args.y = result.data<T>();
    args.inverse = inverse;
    kernels::rotary(args);
  });
  return result;
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

// A step of a program that needs the table of a model without data (OpKind::custom).
Tensor recorded_table(const Tensor& angles, const Shape& shape) {
  const Tensor result = symbolic_result(shape, angles.dtype());
  CustomOperation step{.name = "rotary_table"};
  step.compute = [half = angles.size(-1), rows = rows_of(angles)](const float* const* in, float* const* out) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < half; ++i) {
        out[0][2 * r * half + i] = std::cos(in[0][r * half + i]);
        out[0][(2 * r + 1) * half + i] = std::sin(in[0][r * half + i]);
      }
    }
  };
  record(OpKind::custom, {contiguous(angles)}, {result},
         {.custom = std::make_shared<const CustomOperation>(std::move(step))});
  return result;
}

}  // namespace

Tensor rotary_table(const Tensor& angles) {
  if (angles.rank() < 1) throw Error("rotary_table", "angles [..., d/2]", "a scalar");
  Shape shape = angles.shape();
  const int64_t half = shape.back(), rows = rows_of(angles);
  shape[angles.rank() - 1] = 2 * half;
  if (symbolic({&angles})) return recorded_table(angles, shape);
  const DType dtype = compute_dtype(angles, "rotary_table");
  const Tensor from = prepared(angles, dtype), table = Tensor::empty(shape, dtype);
  dispatch_compute(dtype, [&](auto tag) {
    using T = decltype(tag);
    for (int64_t at = 0; at < rows * half; ++at) {
      T* const to = table.data<T>() + at / half * 2 * half + at % half;
      to[0] = std::cos(from.data<T>()[at]);
      to[half] = std::sin(from.data<T>()[at]);
    }
  });
  Tensor result = table.to(angles.dtype());
  if (autograd::recording({angles})) {
    autograd::record(result, "rotary_table", {angles}, [table, shape = angles.shape(), half](const Tensor& grad) {
      const Tensor g = prepared(grad, table.dtype()), grad_angles = Tensor::empty(shape, table.dtype());
      dispatch_compute(table.dtype(), [&](auto tag) {
        using T = decltype(tag);
        for (int64_t at = 0; at < grad_angles.numel(); ++at) {
          const int64_t cos = at / half * 2 * half + at % half;
          grad_angles.data<T>()[at] =
              g.data<T>()[cos + half] * table.data<T>()[cos] - g.data<T>()[cos] * table.data<T>()[cos + half];
        }
      });
      return std::vector<Tensor>{grad_angles};
    });
  }
  return result;
}

Tensor rotary(const Tensor& qkv, const Tensor& table, int64_t heads, RotaryPairs pairs) {
  check(qkv, table, heads);
  if (symbolic({&qkv, &table})) {
    const Tensor result = symbolic_result(qkv.shape(), qkv.dtype());
    record(OpKind::rotary, {contiguous(qkv), contiguous(table)}, {result}, {.heads = heads, .pairs = pairs});
    return result;
  }
  const DType dtype = compute_dtype(qkv, "rotary");
  const Tensor x = prepared(qkv, dtype), t = prepared(table, dtype);
  Tensor result = rotated(x, t, heads, pairs, false).to(qkv.dtype());
  if (autograd::recording({qkv, table})) {
    const bool for_table = autograd::requires_grad(table);
    const Tensor saved = for_table ? x : Tensor();
    autograd::record(result, "rotary", {qkv, table}, [saved, t, heads, pairs](const Tensor& grad) {
      const Tensor g = prepared(grad, t.dtype());
      Tensor grad_table;
      if (saved.defined()) {
        dispatch_compute(t.dtype(),
                         [&](auto tag) { grad_table = table_gradient<decltype(tag)>(saved, g, t, heads, pairs); });
      }
      return std::vector<Tensor>{rotated(g, t, heads, pairs, true), grad_table};
    });
  }
  return result;
}

}  // namespace vitrail::ops
