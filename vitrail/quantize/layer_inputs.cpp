// SPDX-License-Identifier: Apache-2.0
#include "vitrail/quantize/layer_inputs.h"

#include <algorithm>
#include <vector>

#include "vitrail/base/error.h"
#include "vitrail/kernels/rowwise/row_sum_internal.h"

namespace vitrail::quantize {

std::map<std::string, std::string> inputs_of(const models::VisionTransformer& model, int64_t block) {
  const std::string path = str("blocks.", block), before = block > 0 ? str("blocks.", block - 1, ".out") : "embedded";
  const bool norm_first = model.config().norm_first;
  return {
      {path + ".attn.qkv", norm_first ? path + ".norm1" : before},
      {path + ".attn.proj", path + ".attn.merged"},
      {path + ".mlp.fc1", norm_first ? path + ".norm2" : path + ".norm1"},
      {path + ".mlp.fc2", path + (model.config().mlp_layer == models::MlpLayer::swiglu ? ".mlp.gate" : ".mlp.fc1")}};
}

Tensor centered_patch_tokens(const Tensor& x, int64_t alone) {
  const Tensor apart = x.clone();
  const int64_t tokens = x.size(1), in = x.size(2), zeros = std::min(alone, tokens);
  std::vector<float> mean(static_cast<size_t>(in));
  for (int64_t image = 0; image < x.size(0); ++image) {
    float* const rows = apart.data<float>() + image * tokens * in;
    std::fill_n(rows, zeros * in, 0.0F);
    if (tokens > zeros) {
      kernels::sum_of_rows(rows + zeros * in, in, tokens - zeros, in, 1 / static_cast<float>(tokens - zeros),
                           mean.data());
    }
    for (int64_t i = zeros * in; i < tokens * in; ++i) rows[i] -= mean[i % in];
  }
  return apart;
}

}  // namespace vitrail::quantize
