// SPDX-License-Identifier: Apache-2.0
#include "vitrail/infer/token_rows_internal.h"

namespace vitrail::infer {
namespace {

// A view that skips leading tokens has other tokens in its rows.
bool begins_with_first_token(const Tensor& x) { return x.rank() == 4 || (x.rank() == 3 && x.offset() == 0); }

}  // namespace

TokenRows::TokenRows(const ops::Recorder& recorder) : roles_(recorder.token_roles()) {
  for (const ops::RecordedOperation& op : recorder.operations()) {
    const Tensor &x = op.inputs[0], &y = op.outputs[0];
    const auto found = roles_.find(x.storage().get());
    if (found == roles_.end() || !op.operation->keeps_token_order || !begins_with_first_token(x) || y.rank() != 3)
      continue;
    roles_[y.storage().get()] = found->second;
  }
}

std::optional<TokenRows::Rows> TokenRows::of(const Tensor& x) const {
  const auto found = roles_.find(x.storage().get());
  if (found == roles_.end() || x.rank() != 3) return std::nullopt;
  return Rows{x.size(1), found->second};
}

}  // namespace vitrail::infer
