#include "vitrail/infer/layer_inputs.h"

#include "vitrail/base/error.h"

namespace vitrail::infer {

std::map<std::string, std::string> inputs_of(const models::VisionTransformer& model, int64_t block) {
  const std::string path = str("blocks.", block), before = block > 0 ? str("blocks.", block - 1, ".out") : "embedded";
  const bool norm_first = model.config().norm_first;
  return {
      {path + ".attn.qkv", norm_first ? path + ".norm1" : before},
      {path + ".attn.proj", path + ".attn.merged"},
      {path + ".mlp.fc1", norm_first ? path + ".norm2" : path + ".norm1"},
      {path + ".mlp.fc2", path + (model.config().mlp_layer == models::MlpLayer::swiglu ? ".mlp.gate" : ".mlp.fc1")}};
}

int64_t tokens_read_alone(const models::VisionTransformer& model) {
  const models::VisionTransformerConfig& config = model.config();
  if (config.global_pool != models::GlobalPool::token) return 0;
  return config.dist_token ? 2 : 1;
}

}  // namespace vitrail::infer
