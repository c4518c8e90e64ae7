// SPDX-License-Identifier: Apache-2.0
#pragma once
// Token merging (Bolya et al. 2023, "Token Merging: Your ViT But Faster", section 3 and appendix D): tokens whose keys
// are alike become one, their mean.
#include <cstdint>

#include "vitrail/kernels/attention/attention.h"

namespace vitrail::kernels {

// How many tokens can disappear at once: half of those behind the prefix.
int64_t max_mergeable(int64_t tokens, int64_t prefix);

struct TokenMergingArgs {
  int64_t batch = 0, tokens = 0, width = 0;
  int64_t merged = 0;  // how many tokens disappear in each sample, at most max_mergeable()
  int64_t prefix = 0;  // the first tokens (class, distillation, registers), which stay as they are
  int64_t heads = 0, head_dim = 0;
  HeadView<const float> keys{};  // [batch, heads, tokens, head_dim]
  const float* x = nullptr;      // [batch, tokens, width]
  const float* sizes = nullptr;  // [batch, tokens]: how many patches a token stands for; null: one each
  float* out = nullptr;          // [batch, tokens − merged, width]
  float* out_sizes = nullptr;    // [batch, tokens − merged]
  float* out_log_sizes = nullptr;
};

// Bipartite soft matching: after the prefix, every even token (source) is matched with the odd token (destination)
// whose key, averaged over heads, has the largest cosine similarity.  The `merged` most similar sources are merged into
// their destinations, weighted by size.  The output order is prefix, remaining sources, destinations, each in input
// order, as in the authors' code for models with a class token.
void merge_tokens(const TokenMergingArgs& args);

}  // namespace vitrail::kernels
