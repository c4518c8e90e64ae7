// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string_view>

#include "vitrail/base/error.h"
#include "vitrail/explain/attention_values_internal.h"
#include "vitrail/explain/forward_internal.h"
#include "vitrail/nn/trace.h"

namespace vitrail::explain {
namespace {

// Values of a block that are kept; all values outside blocks are.
constexpr std::array<std::string_view, 11> kKept{
    ".mlp.act", ".attn.qkv",   ".attn.qkv_reshaped", ".attn.qkv_permuted", ".attn.q",   ".attn.k",
    ".attn.v",  ".drop_path1", ".drop_path2",        ".residual1",         ".residual2"};

bool ends_block(std::string_view name) {
  const std::string_view index = name.substr(std::string_view("blocks.").size());
  return index.find('.') == index.npos;
}

bool is_kept(std::string_view name) {
  if (!name.starts_with("blocks.") || ends_block(name)) return true;
  return std::ranges::any_of(kKept, [&](std::string_view suffix) { return name.ends_with(suffix); });
}

// What is added to the scaled products of queries and keys: scores − scale · q kᵀ.
Tensor score_bias(const Tensor& scores, const Tensor& q, const Tensor& k, double scale) {
  return attention_scores(q, k, scores, -scale);
}

}  // namespace

std::string in_block(int64_t block, const char* name) { return str("blocks.", block, ".", name); }
std::string input_of(int64_t block) { return block == 0 ? "norm_pre" : str("blocks.", block - 1); }

const Tensor& Forward::at(const std::string& name) const {
  const auto found = values.find(name);
  if (found == values.end()) throw Error("explain", "the value \"" + name + "\" of the forward pass", "none");
  return found->second;
}

Forward run_forward(const models::VisionTransformer& model, const Tensor& images) {
  const models::VisionTransformerConfig& config = model.config();
  const analysis::PatchGrid patches{model.grid_of(images.size(2), images.size(3)), config.patch_size};
  const double scale = attention_scale(config);
  const bool has_bias = config.use_rel_pos_bias || config.use_shared_rel_pos_bias;
  Forward forward;
  forward.values["images"] = images;
  const nn::TraceScope scope([&](const std::string& name, const Tensor& value) {
    if (is_kept(name)) forward.values[name] = value;
    if (name.ends_with(".attn.weights") && name.starts_with("blocks."))
      forward.heads.push_back(
          analysis::head_statistics(value.select(0, 0).contiguous(), model.num_prefix_tokens(), patches));
    if (has_bias && name.ends_with(".attn.scores")) {
      const std::string layer = name.substr(0, name.size() - std::string_view("scores").size());
      forward.values[layer + "bias"] = score_bias(value, forward.at(layer + "q"), forward.at(layer + "k"), scale);
    }
  });
  model.forward(images);
  return forward;
}

}  // namespace vitrail::explain
