// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "vitrail/infer/rewrite.h"

namespace vitrail::infer {

// Operations of which nothing reads a result go.  Where only one token of an operation's result is read of every image
// (the class token, by the head), computes that token alone: its result becomes a view of what it was, so that readers
// stay as they are.  Goes from the last operation to the first, so in a model that classifies by its class token the
// final norm, the last block's MLP, projection and queries' attention are left out for all other tokens: with an MLP of
// four widths nine twelfths of the block's linear products.  Merging (token_merging.h) is passed by where all that is
// read of it is a token that it leaves alone.
void eliminate_dead_tokens(std::vector<FusedOperation>& list, const std::vector<Tensor>& outputs);

}  // namespace vitrail::infer
