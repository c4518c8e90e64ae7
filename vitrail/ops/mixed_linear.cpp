// SPDX-License-Identifier: Apache-2.0
// Everything between two GEMMs is one pass over memory: a block of rows is converted to f32, processed in cache, and
// rounded to bf16.
#include "vitrail/ops/mixed_linear_internal.h"

#include <algorithm>
#include <memory>

#include "vitrail/base/parallel.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/kernels/rowwise/bf16_conversion.h"
#include "vitrail/kernels/rowwise/elementwise.h"
#include "vitrail/ops/dispatch.h"

namespace vitrail::ops {
namespace {

using kernels::Activation;

constexpr int64_t kBlockElements = 16384;  // 64 KiB in f32: three such blocks stay in the L2 cache

int64_t block_rows(int64_t cols) { return std::max<int64_t>(1, kBlockElements / (cols + 1)); }

// c [m, n] = op(a) op(b) + bias.  a and b are bf16, c is f32 or bf16, bias is f32 [n] or undefined.  A processor
// without bf16 arithmetic computes in f32.
void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const Tensor& a, const Tensor& b, const Tensor& bias,
          const Tensor& c) {
  const int64_t lda = ta ? m : k, ldb = tb ? k : n;
  const float* const addend = data_or_null<float>(bias);
  const bool narrow = c.dtype() == DType::bf16;
  if (kernels::multiplies_bf16()) {
    const auto *left = a.data<BFloat16>(), *right = b.data<BFloat16>();
    if (narrow) return kernels::gemm(ta, tb, m, n, k, left, lda, right, ldb, addend, c.data<BFloat16>(), n);
    return kernels::gemm(ta, tb, m, n, k, left, lda, right, ldb, addend, c.data<float>(), n);
  }
  const Tensor wide_a = converted(a, DType::f32), wide_b = converted(b, DType::f32),
               result = narrow ? Tensor::empty(c.shape()) : c;
  kernels::gemm(ta, tb, m, n, k, wide_a.data<float>(), lda, wide_b.data<float>(), ldb, false, result.data<float>(), n);
  if (addend) kernels::add_bias(Activation::none, addend, result.data<float>(), nullptr, m, n);
  if (narrow) kernels::round_to_bf16(result.data<float>(), c.data<BFloat16>(), m * n);
}

using Buffer = std::unique_ptr<float[]>;
Buffer buffer(int64_t elements) { return std::make_unique_for_overwrite<float[]>(static_cast<size_t>(elements)); }

// Calls body(first row, number of rows, index of the block) in parallel.  The blocks depend only on the shape, so
// results do not depend on the threads.
template <class Body>
void for_each_block(int64_t rows, int64_t cols, const Body& body) {
  const int64_t step = block_rows(cols), blocks = ceil_div(rows, step);
  parallel_for(0, blocks, 1, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) body(block * step, std::min(step, rows - block * step), block);
  });
}

}  // namespace

MixedLinear mixed_linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation, bool save) {
  const int64_t rows = rows_of(x), out = weight.size(0), in = weight.size(1);
  Shape shape = x.shape();
  shape[shape.rank() - 1] = out;
  const Tensor pre = Tensor::empty(shape, DType::bf16);
  gemm(false, true, rows, out, in, x, weight, bias, pre);
  if (activation == Activation::none) return {pre, {}};
  const Tensor result = save ? Tensor::empty(shape, DType::bf16) : pre;
  for_each_block(rows, out, [&](int64_t first, int64_t count, int64_t) {
    const int64_t at = first * out, elements = count * out;
    const Buffer block = buffer(elements);
    kernels::widen_bf16(pre.data<BFloat16>() + at, block.get(), elements);
    kernels::activate(activation, block.get(), block.get(), elements);
    kernels::round_to_bf16(block.get(), result.data<BFloat16>() + at, elements);
  });
  return {result, save ? pre : Tensor()};
}

namespace {

// The gradient before the activation, in bf16, and that of the bias (undefined unless needed), which sums rows before
// they are rounded.
struct PreActivationGrads {
  Tensor grad, grad_bias;
};

PreActivationGrads pre_activation_grads(const Tensor& grad, const Tensor& pre, Activation activation, int64_t out,
                                        bool bias) {
  const int64_t rows = rows_of(grad), blocks = ceil_div(rows, block_rows(out));
  const bool wide = grad.dtype() == DType::f32, same = !wide && activation == Activation::none;
  if (same && !bias) return {grad, {}};
  PreActivationGrads result{same ? grad : Tensor::empty(grad.shape(), DType::bf16),
                            bias ? Tensor::empty({out}) : Tensor()};
  const Tensor partial = bias ? Tensor::empty({blocks, out}) : Tensor();
  for_each_block(rows, out, [&](int64_t first, int64_t count, int64_t block) {
    const int64_t at = first * out, elements = count * out;
    const Buffer wide_grad = buffer(elements), wide_pre = buffer(elements);
    if (!wide) kernels::widen_bf16(grad.data<BFloat16>() + at, wide_grad.get(), elements);
    const float* g = wide ? grad.data<float>() + at : wide_grad.get();
    if (activation != Activation::none) {
      kernels::widen_bf16(pre.data<BFloat16>() + at, wide_pre.get(), elements);
      kernels::activation_backward(activation, wide_pre.get(), g, wide_grad.get(), elements);  // g may be the result
      g = wide_grad.get();
    }
    if (bias) kernels::sum_rows(g, nullptr, count, out, partial.data<float>() + block * out);
    if (!same) kernels::round_to_bf16(g, result.grad.data<BFloat16>() + at, elements);
  });
  if (bias) kernels::sum_rows(partial.data<float>(), nullptr, blocks, out, result.grad_bias.data<float>());
  return result;
}

}  // namespace

std::vector<Tensor> mixed_linear_backward(const Tensor& x, const Tensor& weight, const Tensor& pre,
                                          Activation activation, const LinearGrads& needed, DType grad_x_dtype,
                                          const Tensor& grad) {
  const int64_t rows = rows_of(x), out = weight.size(0), in = weight.size(1);
  const PreActivationGrads grads = pre_activation_grads(grad, pre, activation, out, needed.bias);
  Tensor grad_x, grad_weight;
  if (needed.x) {
    grad_x = Tensor::empty(x.shape(), grad_x_dtype);
    gemm(false, false, rows, in, out, grads.grad, weight, {}, grad_x);
  }
  if (needed.weight) {
    grad_weight = Tensor::empty(weight.shape());
    gemm(true, false, out, in, rows, grads.grad, x, {}, grad_weight);
  }
  return {grad_x, grad_weight, grads.grad_bias};
}

}  // namespace vitrail::ops
