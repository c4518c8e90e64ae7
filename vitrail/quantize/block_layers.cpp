// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "vitrail/base/error.h"
#include "vitrail/kernels/rowwise/row_sum_internal.h"
#include "vitrail/models/dense/vit_backbone.h"
#include "vitrail/quantize/block_layers_internal.h"

namespace vitrail::quantize {

std::string VitBlocks::block(int64_t index) const { return str(path, path.empty() ? "" : ".", "blocks.", index); }

std::vector<VitBlocks> vit_blocks(const nn::Module& network) {
  std::vector<VitBlocks> result;
  for (const auto& [path, module] : network.named_modules()) {
    if (const auto* const vit = dynamic_cast<const models::VisionTransformer*>(module))
      result.emplace_back(network, path, vit->config());
    if (const auto* const vit = dynamic_cast<const models::VitBackbone*>(module))
      result.emplace_back(network, path, vit->config());
  }
  return result;
}

std::map<std::string, std::string> traced_inputs(const VitBlocks& blocks, int64_t block) {
  const std::string path = blocks.block(block);
  const std::string stem = blocks.path.empty() ? "norm_pre" : blocks.path + ".norm_pre";
  const std::string block_input = block > 0 ? blocks.block(block - 1) : stem;
  const bool pre_norm = blocks.config.norm_first && !blocks.config.use_post_norm;
  const std::string attended = blocks.config.use_post_norm ? path + ".residual1" : path + ".norm1";
  return {{path + ".attn.qkv", pre_norm ? path + ".norm1" : block_input},
          {path + ".attn.proj", path + ".attn.norm"},
          {path + ".mlp.fc1", pre_norm ? path + ".norm2" : attended},
          {path + ".mlp.fc2", path + ".mlp.norm"}};
}

ValueProjection value_projection(const VitBlocks& blocks, const std::string& attention) {
  const Tensor qkv = blocks.weight(attention + ".qkv");
  const int64_t width = qkv.size(0) / 3;
  ValueProjection values{qkv.narrow(0, 2 * width, width), {}};
  if (!blocks.config.qkv_bias) return values;
  const bool separate = blocks.config.attn_type == models::AttentionType::eva;
  values.bias = separate ? blocks.module.parameter(attention + ".v_bias")
                         : blocks.module.parameter(attention + ".qkv.bias").narrow(0, 2 * width, width);
  return values;
}

Tensor centered_tokens(const Tensor& x, std::optional<int64_t> num_head_tokens) {
  const Tensor result = x.clone();
  if (!num_head_tokens) return result;
  const int64_t tokens = x.size(1), in = x.size(2), head_tokens = std::min(*num_head_tokens, tokens);
  std::vector<float> mean(static_cast<size_t>(in));
  for (int64_t image = 0; image < x.size(0); ++image) {
    float* const rows = result.data<float>() + image * tokens * in;
    std::fill_n(rows, head_tokens * in, 0.0F);
    if (tokens > head_tokens) {
      const int64_t count = tokens - head_tokens;
      kernels::sum_of_rows(rows + head_tokens * in, in, count, in, 1 / static_cast<float>(count), mean.data());
    }
    for (int64_t i = head_tokens * in; i < tokens * in; ++i) rows[i] -= mean[i % in];
  }
  return result;
}

}  // namespace vitrail::quantize
