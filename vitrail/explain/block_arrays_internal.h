// SPDX-License-Identifier: Apache-2.0
#pragma once
// The arrays of the forward pass, stored for a size of the file.
#include "vitrail/explain/arrays_internal.h"
#include "vitrail/explain/explain.h"
#include "vitrail/explain/forward_internal.h"

namespace vitrail::explain {

// How the arrays of the blocks are stored.
struct Storage {
  Encoding outside = Encoding::f16;  // for arrays that belong to no block
  Encoding stream = Encoding::f16, attention = Encoding::f16, mlp = Encoding::i8;
  // How many tokens have v and the residual stream, and the hidden features of the MLP; 0: all.
  int64_t stream_tokens = 0, mlp_tokens = 0;
  bool few_queries = false;    // only these tokens have q and a bias
  int64_t attention_step = 1;  // only every n-th block, the last one among them, has q, k, v and a bias
};

// The best storage first.
std::vector<Storage> storages(Detail detail);
size_t max_bytes(Detail detail);  // the file's

struct LeftOut {
  std::string what, kept;
};

// What of the forward pass is not in the file.
std::vector<LeftOut> left_out(const Storage& storage, int64_t tokens, int64_t blocks);

void add_head_statistics(const Forward& forward, Arrays& arrays);  // explain.heads.*

// Adds the arrays, a blob for what is outside blocks and one for each block.  Returns the errors of the values that the
// page derives, by their names.
nlohmann::ordered_json add_forward(const models::VisionTransformer& model, const Forward& forward,
                                   const Storage& storage, const std::vector<ChannelScale>& pixels, Arrays& arrays);

}  // namespace vitrail::explain
