// SPDX-License-Identifier: Apache-2.0
// What lies between two products is done in one pass over memory: a block of rows is brought to f32, where our kernels
// compute, and leaves the cache in bf16.
#include "vitrail/ops/mixed_linear.h"

#include <algorithm>
#include <memory>

#include "vitrail/base/parallel.h"
#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/kernels/rowwise/bf16_conversion.h"
#include "vitrail/kernels/rowwise/elementwise.h"
#include "vitrail/ops/dispatch.h"

namespace vitrail::ops {
namespace {

using kernels::Activation;

constexpr int64_t kBlockElements = 16384;  // 64 KiB in f32: three such blocks stay in the second-level cache

int64_t block_rows(int64_t cols) { return std::max<int64_t>(1, kBlockElements / (cols + 1)); }

// c [m, n], f32 or bf16, = op(a) op(b) + bias (undefined: none) for bf16 a and b, which are widened where the processor
// does not multiply them.
void product(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const Tensor& a, const Tensor& b, const Tensor& bias,
             const Tensor& c) {
  const int64_t lda = ta ? m : k, ldb = tb ? k : n;
  const float* const added = data_or_null<float>(bias);
  const bool narrow = c.dtype() == DType::bf16;
  if (kernels::multiplies_bf16()) {
    const auto *left = a.data<BFloat16>(), *right = b.data<BFloat16>();
    if (narrow) return kernels::gemm(ta, tb, m, n, k, left, lda, right, ldb, added, c.data<BFloat16>(), n);
    return kernels::gemm(ta, tb, m, n, k, left, lda, right, ldb, added, c.data<float>(), n);
  }
  const Tensor wide_a = converted(a, DType::f32), wide_b = converted(b, DType::f32),
               sums = narrow ? Tensor::empty(c.shape()) : c;
  kernels::gemm(ta, tb, m, n, k, wide_a.data<float>(), lda, wide_b.data<float>(), ldb, false, sums.data<float>(), n);
  if (added) kernels::add_bias(Activation::none, added, sums.data<float>(), nullptr, m, n);
  if (narrow) kernels::round_to_bf16(sums.data<float>(), c.data<BFloat16>(), m * n);
}

using Buffer = std::unique_ptr<float[]>;
Buffer buffer(int64_t elements) { return std::make_unique_for_overwrite<float[]>(static_cast<size_t>(elements)); }

// body(first row, rows, block's index) for blocks that depend on the shape alone, in parallel.
template <class Body>
void for_each_block(int64_t rows, int64_t cols, const Body& body) {
  const int64_t step = block_rows(cols), blocks = (rows + step - 1) / step;
  parallel_for(0, blocks, 1, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) body(block * step, std::min(step, rows - block * step), block);
  });
}

}  // namespace

MixedLinear mixed_linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation, bool keep) {
  const int64_t rows = rows_of(x), out = weight.size(0), in = weight.size(1);
  Shape shape = x.shape();
  shape[shape.rank() - 1] = out;
  const Tensor before = Tensor::empty(shape, DType::bf16);
  product(false, true, rows, out, in, x, weight, bias, before);
  if (activation == Activation::none) return {before, {}};
  const Tensor result = keep ? Tensor::empty(shape, DType::bf16) : before;
  for_each_block(rows, out, [&](int64_t first, int64_t count, int64_t) {
    const int64_t at = first * out, elements = count * out;
    const Buffer block = buffer(elements);
    kernels::widen_bf16(before.data<BFloat16>() + at, block.get(), elements);
    kernels::activate(activation, block.get(), block.get(), elements);
    kernels::round_to_bf16(block.get(), result.data<BFloat16>() + at, elements);
  });
  return {result, keep ? before : Tensor()};
}

namespace {

// The gradient before the activation, in bf16, and the bias's (undefined unless wanted): sums of its rows before they
// are rounded.
struct Slopes {
  Tensor grad, grad_bias;
};

Slopes slopes_of(const Tensor& grad, const Tensor& before, Activation activation, int64_t out, bool bias) {
  const int64_t rows = rows_of(grad), blocks = (rows + block_rows(out) - 1) / block_rows(out);
  const bool wide = grad.dtype() == DType::f32, same = !wide && activation == Activation::none;
  if (same && !bias) return {grad, {}};
  Slopes slopes{same ? grad : Tensor::empty(grad.shape(), DType::bf16), bias ? Tensor::empty({out}) : Tensor()};
  const Tensor partial = bias ? Tensor::empty({blocks, out}) : Tensor();
  for_each_block(rows, out, [&](int64_t first, int64_t count, int64_t block) {
    const int64_t at = first * out, elements = count * out;
    const Buffer given = buffer(elements), pre = buffer(elements);
    if (!wide) kernels::widen_bf16(grad.data<BFloat16>() + at, given.get(), elements);
    const float* g = wide ? grad.data<float>() + at : given.get();
    if (activation != Activation::none) {
      kernels::widen_bf16(before.data<BFloat16>() + at, pre.get(), elements);
      kernels::activation_backward(activation, pre.get(), g, given.get(), elements);  // given may be g
      g = given.get();
    }
    if (bias) kernels::sum_rows(g, nullptr, count, out, partial.data<float>() + block * out);
    if (!same) kernels::round_to_bf16(g, slopes.grad.data<BFloat16>() + at, elements);
  });
  if (bias) kernels::sum_rows(partial.data<float>(), nullptr, blocks, out, slopes.grad_bias.data<float>());
  return slopes;
}

}  // namespace

std::vector<Tensor> mixed_linear_backward(const Tensor& x, const Tensor& weight, const Tensor& before,
                                          Activation activation, const Wanted& wanted, DType grad_x_dtype,
                                          const Tensor& grad) {
  const int64_t rows = rows_of(x), out = weight.size(0), in = weight.size(1);
  const Slopes slopes = slopes_of(grad, before, activation, out, wanted.bias);
  Tensor grad_x, grad_weight;
  if (wanted.x) {
    grad_x = Tensor::empty(x.shape(), grad_x_dtype);
    product(false, false, rows, in, out, slopes.grad, weight, {}, grad_x);
  }
  if (wanted.weight) {
    grad_weight = Tensor::empty(weight.shape());
    product(true, false, out, in, rows, slopes.grad, x, {}, grad_weight);
  }
  return {grad_x, grad_weight, slopes.grad_bias};
}

}  // namespace vitrail::ops
