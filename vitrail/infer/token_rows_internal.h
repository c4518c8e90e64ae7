// SPDX-License-Identifier: Apache-2.0
#pragma once
// Maps rows of recorded tensors to the tokens of an image.
#include <map>
#include <optional>

#include "vitrail/ops/recorder.h"

namespace vitrail::infer {

// Finds the tokens in every tensor that a recorded pass computes row by row from one that ops::annotate_tokens()
// marked.
class TokenRows {
 public:
  explicit TokenRows(const ops::Recorder& recorder);

  // The number N and the roles of the tokens in x [B, N, C].  Nothing if the rows are not known to be tokens, as for
  // the patches that the patch embedding reads.
  struct Rows {
    int64_t tokens = 0;
    ops::TokenRoles roles;
  };
  std::optional<Rows> of(const Tensor& x) const;

 private:
  std::map<const Storage*, ops::TokenRoles> roles_;
};

}  // namespace vitrail::infer
