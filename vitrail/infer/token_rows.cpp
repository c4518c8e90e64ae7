// SPDX-License-Identifier: Apache-2.0
#include "vitrail/infer/token_rows_internal.h"

namespace vitrail::infer {
namespace {

using ops::OpKind;

// True if row i of the output belongs to the same token as row i of the first input.
bool keeps_token_order(const ops::Operation& op) {
  switch (op.kind) {
    case OpKind::linear:
    case OpKind::layer_norm:
    case OpKind::rms_norm:
    case OpKind::residual_add:
    case OpKind::attention:  // has a row per query
    case OpKind::rotary:
    case OpKind::activation:
    case OpKind::silu_gate:
    case OpKind::add:
    case OpKind::mul:
    case OpKind::copy:
    case OpKind::merge_tokens:  // true for prefix tokens
      return true;
    case OpKind::patchify:
    case OpKind::cat:
    case OpKind::mean:
    case OpKind::embedding:
      return false;
    case OpKind::custom:
      return op.attributes.custom->keeps_token_order;
  }
  return false;
}

// A view that skips leading tokens has other tokens in its rows.
bool begins_with_first_token(const Tensor& x) { return x.rank() == 4 || (x.rank() == 3 && x.offset() == 0); }

}  // namespace

TokenRows::TokenRows(const ops::Recorder& recorder) : roles_(recorder.token_roles()) {
  for (const ops::Operation& op : recorder.operations()) {
    const Tensor &x = op.inputs[0], &y = op.outputs[0];
    const auto found = roles_.find(x.storage().get());
    if (found == roles_.end() || !keeps_token_order(op) || !begins_with_first_token(x) || y.rank() != 3) continue;
    roles_[y.storage().get()] = found->second;
  }
}

std::optional<TokenRows::Rows> TokenRows::of(const Tensor& x) const {
  const auto found = roles_.find(x.storage().get());
  if (found == roles_.end() || x.rank() != 3) return std::nullopt;
  return Rows{x.size(1), found->second};
}

}  // namespace vitrail::infer
