// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/token_merging.h"

#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/kernels/attention/token_merging.h"
#include "vitrail/ops/layout_internal.h"
#include "vitrail/ops/recorder.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::ops {
namespace {

void check(const Tensor& x, const Tensor& keys, const Tensor& sizes, int64_t merged, int64_t prefix) {
  const bool fits = x.rank() == 3 && keys.rank() == 4 && keys.size(0) == x.size(0) && keys.size(2) == x.size(1) &&
                    (!sizes.defined() || sizes.shape() == Shape{x.size(0), x.size(1)});
  if (!fits) {
    throw Error("merge_tokens", "x [B, N, C], keys [B, H, N, d], sizes [B, N]",
                str(x.shape(), ", ", keys.shape(), sizes.defined() ? str(", ", sizes.shape()) : ""));
  }
  const int64_t max = max_mergeable(x.size(1), prefix);
  if (prefix < 0 || merged < 0 || merged > max) {
    throw Error("merge_tokens", str("at most ", max, " of ", x.size(1), " tokens, ", prefix, " of them a prefix"),
                str(merged));
  }
  if (autograd::recording({x, keys})) throw Error("merge_tokens", "inputs that require no gradient", "inputs that do");
}

Tensor dense(const Tensor& t) { return t.defined() ? t.detach().to(DType::f32).contiguous() : t; }

}  // namespace

int64_t max_mergeable(int64_t tokens, int64_t prefix) { return kernels::max_mergeable(tokens, prefix); }

MergedTokens merge_tokens(const Tensor& x, const Tensor& keys, const Tensor& sizes, int64_t merged, int64_t prefix) {
  check(x, keys, sizes, merged, prefix);
  const Shape tokens{x.size(0), x.size(1) - merged};
  const Shape rows{tokens[0], tokens[1], x.size(2)};
  if (symbolic({&x})) {
    MergedTokens result{symbolic_result(rows, x.dtype()), symbolic_result(tokens, DType::f32),
                        symbolic_result(tokens, DType::f32)};
    record(OpKind::merge_tokens,
           {contiguous(x), with_contiguous_last_axis(keys), sizes.defined() ? contiguous(sizes) : sizes},
           {result.x, result.sizes, result.log_sizes}, {.merged = merged, .prefix = prefix});
    return result;
  }
  const Tensor xc = dense(x), kc = dense(keys), sc = dense(sizes);
  MergedTokens result{Tensor::empty(rows), Tensor::empty(tokens), Tensor::empty(tokens)};
  kernels::merge_tokens({.batch = x.size(0),
                         .tokens = x.size(1),
                         .width = x.size(2),
                         .merged = merged,
                         .prefix = prefix,
                         .heads = keys.size(1),
                         .head_dim = keys.size(3),
                         .keys = {kc.data<float>(), kc.strides()[0], kc.strides()[1], kc.strides()[2]},
                         .x = xc.data<float>(),
                         .sizes = sc.defined() ? sc.data<float>() : nullptr,
                         .out = result.x.data<float>(),
                         .out_sizes = result.sizes.data<float>(),
                         .out_log_sizes = result.log_sizes.data<float>()});
  result.x = result.x.to(x.dtype());
  return result;
}

}  // namespace vitrail::ops
