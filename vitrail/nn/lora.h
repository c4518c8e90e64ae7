// SPDX-License-Identifier: Apache-2.0
#pragma once
// LoRA (Hu et al. 2021, "LoRA: Low-rank adaptation of large language models", arXiv 2106.09685): the weights of linear
// layers stay, and a product of two small matrices that is added to each of them is trained.
#include <cstdint>
#include <string>
#include <vector>

#include "vitrail/nn/module.h"

namespace vitrail::nn {

struct LoraOptions {
  int64_t rank = 8;
  double alpha = 16;          // the product is scaled by alpha / rank
  std::string layers = "qv";  // adapted in each block: the projection to queries and values, or "all" linear layers
  double dropout = 0;         // probability for the input of A, in [0, 1)
  double scale() const { return alpha / static_cast<double>(rank); }
};

// Gives linear layers of the blocks of a Vision Transformer ("blocks.N.") low-rank parts: A is drawn with `seed` as
// torch.nn.Linear's weight is, and B is 0, so that the model computes the same as before.  For "qv" the projection to
// queries, keys and values gets a part of twice the rank, in which A's first half serves the queries and its second
// half the values.  Returns the number of layers; throws Error if there are none.
int64_t add_lora(Module& model, const LoraOptions& options, uint64_t seed);

bool is_lora(const std::string& parameter);  // by its name: "blocks.0.attn.qkv.lora_A.weight"

// Adds the low-rank parts to the weights: W + scale · B A.  Returns the parameters without them, in their order.
std::vector<NamedTensor> merge_lora(const std::vector<NamedTensor>& parameters, double scale);

}  // namespace vitrail::nn
