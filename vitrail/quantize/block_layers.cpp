// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "vitrail/base/error.h"
#include "vitrail/kernels/rowwise/row_sum_internal.h"
#include "vitrail/quantize/block_layers_internal.h"

namespace vitrail::quantize {

std::map<std::string, std::string> traced_inputs(const models::VisionTransformer& model, int64_t block) {
  const std::string path = str("blocks.", block);
  const std::string block_input = block > 0 ? str("blocks.", block - 1) : "norm_pre";
  const models::VisionTransformerConfig& config = model.config();
  const bool pre_norm = config.norm_first && !config.use_post_norm;
  const std::string attended = config.use_post_norm ? path + ".residual1" : path + ".norm1";
  return {{path + ".attn.qkv", pre_norm ? path + ".norm1" : block_input},
          {path + ".attn.proj", path + ".attn.norm"},
          {path + ".mlp.fc1", pre_norm ? path + ".norm2" : attended},
          {path + ".mlp.fc2", path + ".mlp.norm"}};
}

ValueProjection value_projection(const models::VisionTransformer& model, const std::string& attention) {
  const Tensor qkv = model.parameter(attention + ".qkv.weight");
  const int64_t width = qkv.size(0) / 3;
  ValueProjection values{qkv.narrow(0, 2 * width, width), {}};
  if (!model.config().qkv_bias) return values;
  const bool separate = model.config().attn_type == models::AttentionType::eva;
  values.bias = separate ? model.parameter(attention + ".v_bias")
                         : model.parameter(attention + ".qkv.bias").narrow(0, 2 * width, width);
  return values;
}

Tensor centered_tokens(const Tensor& x, int64_t num_head_tokens) {
  const Tensor result = x.clone();
  const int64_t tokens = x.size(1), in = x.size(2), head_tokens = std::min(num_head_tokens, tokens);
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
