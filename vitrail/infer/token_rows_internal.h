// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which rows of a recorded pass's tensors are which tokens of an image.
#include <map>
#include <optional>

#include "vitrail/ops/recorder.h"

namespace vitrail::infer {

// The token rows of every tensor that the pass computes row by row from an annotated one (ops::annotate_tokens).
class TokenRows {
 public:
  explicit TokenRows(const ops::Recorder& recorder);

  // The rows of x [B, N, C]: roles and the number N of tokens.  Nothing for a tensor whose rows are not known to be
  // tokens, such as the rows of patches that the patch embedding reads.
  struct Rows {
    int64_t tokens = 0;
    ops::TokenRoles roles;
  };
  std::optional<Rows> of(const Tensor& x) const;

 private:
  std::map<const Storage*, ops::TokenRoles> roles_;
};

}  // namespace vitrail::infer
