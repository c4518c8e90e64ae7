// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/token_merging.h"

#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/kernels/attention/token_merging.h"
#include "vitrail/ops/operation.h"

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

void merge(std::span<const View<const float>> in, std::span<const View<float>> out, int64_t merged, int64_t prefix) {
  const Tensor &x = *in[0].tensor, &keys = *in[1].tensor;
  const Shape& strides = keys.strides();
  kernels::merge_tokens({.batch = x.size(0),
                         .tokens = x.size(1),
                         .width = x.size(2),
                         .merged = merged,
                         .prefix = prefix,
                         .heads = keys.size(1),
                         .head_dim = keys.size(3),
                         .keys = {in[1].data, strides[0], strides[1], strides[2]},
                         .x = in[0].data,
                         .sizes = in[2].data,
                         .out = out[0].data,
                         .out_sizes = out[1].data,
                         .out_log_sizes = out[2].data});
}

}  // namespace

int64_t max_mergeable(int64_t tokens, int64_t prefix) { return kernels::max_mergeable(tokens, prefix); }

MergedTokens merge_tokens(const Tensor& x, const Tensor& keys, const Tensor& sizes, int64_t merged, int64_t prefix) {
  check(x, keys, sizes, merged, prefix);
  const Shape tokens{x.size(0), x.size(1) - merged};
  // Similarities of all pairs between the two halves, by the mean key of the heads.
  const double half = static_cast<double>(x.size(1)) / 2, dims = static_cast<double>(x.size(0) * keys.size(3));
  const std::vector<Tensor> results =
      apply_all({.name = "merge_tokens",
                 .shape = {tokens[0], tokens[1], x.size(2)},
                 .further_results = {{tokens, DType::f32}, {tokens, DType::f32}},
                 .kernel = [=](std::span<const View<const float>> in,
                               std::span<const View<float>> out) { merge(in, out, merged, prefix); },
                 .layout = with_contiguous_last_axis,
                 .flops = 2 * dims * half * half,
                 .text = str("merge_tokens ", merged),
                 .profile = "token merging",
                 .keeps_token_order = true},  // tokens of the prefix
                {contiguous(x), keys, sizes.defined() ? contiguous(sizes) : sizes});
  return {results[0], results[1], results[2]};
}

}  // namespace vitrail::ops
