// SPDX-License-Identifier: Apache-2.0
#include "vitrail/infer/dead_tokens.h"

#include <algorithm>
#include <map>
#include <optional>

namespace vitrail::infer {
namespace {

using ops::OpKind;

// The one token of whole [B, N, C] that a view of its memory reads, of whichever images; none where it reads several.
std::optional<int64_t> only_token(const Tensor& whole, const Tensor& view) {
  const int64_t token = whole.size(2), image = whole.size(1) * token;
  int64_t span = 0;  // within an image
  for (int axis = 0; axis < view.rank(); ++axis) {
    const int64_t stride = view.strides()[axis];
    if (view.size(axis) > 1 && stride % image != 0) span += (view.size(axis) - 1) * stride;
  }
  const int64_t first = view.offset() % image;
  return (first + span) / token == first / token ? std::optional(first / token) : std::nullopt;
}

std::optional<int64_t> only_token(const Tensor& whole, const std::vector<Tensor>& views) {
  std::optional<int64_t> token;
  for (const Tensor& view : views) {
    const auto here = only_token(whole, view);
    if (!here || (token && *token != *here)) return std::nullopt;
    token = here;
  }
  return token;
}

// Whether the kind makes each token of its result of the same token of its first operand, and writes rows at any
// distance.
bool goes_by_token(const FusedOperation& item) {
  switch (item.op.kind) {
    case OpKind::linear:
    case OpKind::layer_norm:
    case OpKind::silu_gate:
      return item.op.inputs[0].rank() == 3;
    case OpKind::attention: {  // of its queries; who asks for the weights asks for those of all queries
      const Tensor& bias = item.op.inputs[3];
      const bool alike = !bias.defined() || (bias.rank() == 4 && bias.size(2) == 1);  // for all queries
      return alike && !item.op.outputs[1].defined();
    }
    default:
      return false;
  }
}

void keep_token(FusedOperation& item, int64_t token) {
  Tensor& input = item.op.inputs[0];
  input = input.narrow(item.op.kind == OpKind::attention ? 2 : 1, token, 1);
  if (item.fused_residual()) item.residual = item.residual.narrow(1, token, 1);
  item.op.outputs[0] = item.op.outputs[0].narrow(1, token, 1);
}

// Tokens of the prefix go through merging as they are.
void pass_merging_by(FusedOperation& item, int64_t token) {
  ops::Operation& op = item.op;
  op = {ops::OpKind::copy, {op.inputs[0].narrow(1, token, 1)}, {op.outputs[0].narrow(1, token, 1)}, {}};
}

}  // namespace

void eliminate_dead_tokens(std::vector<FusedOperation>& list, const std::vector<Tensor>& outputs) {
  std::map<const Storage*, std::vector<Tensor>> reads;
  const auto note = [&reads](const Tensor& tensor) {
    if (tensor.defined()) reads[tensor.storage().get()].push_back(tensor);
  };
  const auto is_read = [&reads](const Tensor& tensor) {
    return tensor.defined() && reads.contains(tensor.storage().get());
  };
  for (const Tensor& output : outputs) note(output);
  std::vector<FusedOperation> kept;  // from the last to the first
  for (auto item = list.rbegin(); item != list.rend(); ++item) {
    const std::vector<Tensor>& results = item->op.outputs;
    if (std::none_of(results.begin(), results.end(), is_read)) continue;
    const Tensor result = results[0];
    const auto token = result.rank() == 3 && result.is_contiguous() && result.numel() > 0 && is_read(result)
                           ? only_token(result, reads.at(result.storage().get()))
                           : std::nullopt;
    if (token && item->op.kind == OpKind::merge_tokens) {
      const bool alone = !is_read(results[1]) && !is_read(results[2]);
      if (alone && *token < item->op.attributes.prefix) pass_merging_by(*item, *token);
    } else if (token && goes_by_token(*item) && result.size(1) > 1) {
      keep_token(*item, *token);
    }
    for (const Tensor& input : item->op.inputs) note(input);
    note(item->residual);
    kept.push_back(*item);
  }
  list.assign(kept.rbegin(), kept.rend());
}

}  // namespace vitrail::infer
