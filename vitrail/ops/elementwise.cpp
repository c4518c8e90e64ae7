#include "vitrail/ops/elementwise.h"

#include "vitrail/autograd/variable.h"
#include "vitrail/base/random.h"
#include "vitrail/kernels/scalar.h"
#include "vitrail/ops/dispatch.h"

namespace vitrail::ops {
namespace {

int wrap(int axis, const Tensor& x, const char* where) {
  const int wrapped = axis < 0 ? axis + x.rank() : axis;
  if (wrapped < 0 || wrapped >= x.rank()) throw Error(where, str("an axis of ", x.shape()), str(axis));
  return wrapped;
}

template <class Fn>
Tensor binary(OpKind kind, const Tensor& a, const Tensor& b, Fn fn) {
  autograd::require_no_grad(name_of(kind), {a, b});
  const Shape shape = broadcast_shapes(a.shape(), b.shape(), name_of(kind));
  if (symbolic({&a, &b})) {
    const Tensor result = symbolic_result(shape, a.dtype());
    record(kind, {a, b}, {result});
    return result;
  }
  const DType dtype = compute_dtype(a, name_of(kind));
  const Tensor ac = a.to(dtype).expand(shape).contiguous(), bc = b.to(dtype).expand(shape).contiguous();
  Tensor result = Tensor::empty(shape, dtype);
  dispatch_compute(dtype, [&](auto tag) {
    using T = decltype(tag);
    const T *x = ac.data<T>(), *y = bc.data<T>();
    T* to = result.data<T>();
    for (int64_t i = 0; i < result.numel(); ++i) to[i] = fn(x[i], y[i]);
  });
  return result.to(a.dtype());
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) {
  return binary(OpKind::add, a, b, [](auto x, auto y) { return x + y; });
}
Tensor mul(const Tensor& a, const Tensor& b) {
  return binary(OpKind::mul, a, b, [](auto x, auto y) { return x * y; });
}

Tensor activation(const Tensor& x, kernels::Activation kind) {
  autograd::require_no_grad("activation", {x});
  if (symbolic({&x})) {
    const Tensor result = symbolic_result(x.shape(), x.dtype());
    record(OpKind::activation, {x}, {result}, {.activation = kind});
    return result;
  }
  const DType dtype = compute_dtype(x, "activation");
  const Tensor xc = prepared(x, dtype);
  Tensor result = Tensor::empty(x.shape(), dtype);
  if (dtype == DType::f32) {
    kernels::activate(kind, xc.data<float>(), result.data<float>(), xc.numel());
  } else {
    for (int64_t i = 0; i < xc.numel(); ++i) {
      result.data<double>()[i] = kernels::scalar::activate(kind, xc.data<double>()[i]);
    }
  }
  return result.to(x.dtype());
}

Tensor silu_gate(const Tensor& x) {
  autograd::require_no_grad("silu_gate", {x});
  if (x.rank() < 1 || x.size(-1) % 2 != 0) throw Error("silu_gate", "an even last extent", x.shape().to_string());
  Shape shape = x.shape();
  const int64_t cols = shape[shape.rank() - 1] /= 2;
  if (symbolic({&x})) {
    const Tensor result = symbolic_result(shape, x.dtype());
    record(OpKind::silu_gate, {x}, {result});
    return result;
  }
  const DType dtype = compute_dtype(x, "silu_gate");
  const Tensor xc = prepared(x, dtype);
  Tensor result = Tensor::empty(shape, dtype);
  const int64_t rows = cols ? result.numel() / cols : 0;
  if (dtype == DType::f32) {
    kernels::silu_gate(xc.data<float>(), 2 * cols, result.data<float>(), cols, rows, cols);
  } else {
    for (int64_t i = 0; i < result.numel(); ++i) {
      const double* pair = xc.data<double>() + i / cols * 2 * cols + i % cols;
      result.data<double>()[i] = kernels::scalar::activate(kernels::Activation::silu, pair[0]) * pair[cols];
    }
  }
  return result.to(x.dtype());
}

Tensor cat(const std::vector<Tensor>& parts, int axis) {
  autograd::require_no_grad("cat", parts);
  if (parts.empty()) throw Error("cat", "at least one tensor", "none");
  axis = wrap(axis, parts[0], "cat");
  Shape shape = parts[0].shape();
  shape[axis] = 0;
  bool meta = false;
  for (const Tensor& part : parts) {
    Shape others = part.shape();
    if (part.rank() == shape.rank()) others[axis] = shape[axis];
    if (!(others == shape)) {
      throw Error("cat", str("shapes that agree but for axis ", axis), str(parts[0].shape(), " and ", part.shape()));
    }
    shape[axis] += part.shape()[axis];
    meta = meta || part.is_meta();
  }
  if (meta) {
    const Tensor result = symbolic_result(shape, parts[0].dtype());
    record(OpKind::cat, parts, {result}, {.axis = axis});
    return result;
  }
  const Tensor result = Tensor::empty(shape, parts[0].dtype());
  int64_t at = 0;
  for (const Tensor& part : parts) {
    result.narrow(axis, at, part.shape()[axis]).copy_(part);
    at += part.shape()[axis];
  }
  return result;
}

Tensor mean(const Tensor& x, int axis) {
  autograd::require_no_grad("mean", {x});
  axis = wrap(axis, x, "mean");
  Shape shape;
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis) shape.push_back(x.shape()[i]);
    (i < axis ? outer : inner) *= i == axis ? 1 : x.shape()[i];
  }
  if (symbolic({&x})) {
    const Tensor result = symbolic_result(shape, x.dtype());
    record(OpKind::mean, {x}, {result}, {.axis = axis});
    return result;
  }
  const DType dtype = compute_dtype(x, "mean");
  const Tensor xc = prepared(x, dtype), result = Tensor::zeros(shape, dtype);
  const int64_t length = x.shape()[axis];
  dispatch_compute(dtype, [&](auto tag) {
    using T = decltype(tag);
    T* to = result.data<T>();
    for (int64_t o = 0; o < outer; ++o, to += inner) {
      const T* from = xc.data<T>() + o * length * inner;
      for (int64_t i = 0; i < length * inner; ++i) to[i % inner] += from[i];
      for (int64_t i = 0; i < inner; ++i) to[i] /= T(length);
    }
  });
  return result.to(x.dtype());
}

Tensor contiguous(const Tensor& x) {
  if (x.is_contiguous()) return x;  // its gradient too
  autograd::require_no_grad("contiguous", {x});
  if (symbolic({&x})) {
    const Tensor result = symbolic_result(x.shape(), x.dtype());
    record(OpKind::copy, {x}, {result});
    return result;
  }
  return x.contiguous();
}

Tensor dropout_mask(const Shape& shape, double p, uint64_t key, DType dtype) {
  Tensor mask = Tensor::empty(shape, DType::f64);
  RandomStream random(key);
  for (int64_t i = 0; i < mask.numel(); ++i) mask.data<double>()[i] = random.uniform() < p ? 0.0 : 1.0 / (1.0 - p);
  return mask.to(dtype);
}

}  // namespace vitrail::ops
