// SPDX-License-Identifier: Apache-2.0
// transformers' text_config of dual models: CLIPTextConfig and SiglipTextConfig.
#include "vitrail/models/huggingface_config_internal.h"

namespace vitrail::models {
namespace {

// The defaults of a configuration class.
struct TextDefaults {
  int64_t vocab_size, context_length, hidden_size, num_attention_heads, intermediate_size;
  double norm_eps;
  const char* hidden_act;
};

TextTransformerConfig read_text(const JsonFields& file, const TextDefaults& defaults) {
  TextTransformerConfig text;
  text.vocab_size = file.integer("vocab_size").value_or(defaults.vocab_size);
  text.context_length = file.integer("max_position_embeddings").value_or(defaults.context_length);
  text.embed_dim = file.integer("hidden_size").value_or(defaults.hidden_size);
  text.depth = file.integer("num_hidden_layers").value_or(12);
  text.num_heads = file.integer("num_attention_heads").value_or(defaults.num_attention_heads);
  text.mlp_hidden = file.integer("intermediate_size").value_or(defaults.intermediate_size);
  text.norm_eps = file.number("layer_norm_eps").value_or(defaults.norm_eps);
  text.act_layer = read_hidden_act(file, defaults.hidden_act);
  return text;
}

}  // namespace

TextTransformerConfig read_clip_text(const JsonFields& file, int64_t projection_dim) {
  TextTransformerConfig text = read_text(file, {49408, 77, 512, 8, 2048, 1e-5, "quick_gelu"});
  text.output_dim = projection_dim;
  // Files of before transformers' correction (pull request 24773) have eos_token_id 2, which no text has.
  text.eos_token_id = file.integer("eos_token_id").value_or(49407);
  text.pool = text.eos_token_id == 2 ? TextPool::largest_id : TextPool::first_eos;
  return text;
}

TextTransformerConfig read_siglip_text(const JsonFields& file) {
  TextTransformerConfig text = read_text(file, {32000, 64, 768, 12, 3072, 1e-6, "gelu_pytorch_tanh"});
  text.output_dim = file.integer("projection_size").value_or(text.embed_dim);
  text.projection_bias = true;
  text.causal = false;
  text.pool = TextPool::last;
  text.loss = DualLoss::sigmoid;
  return text;
}

}  // namespace vitrail::models
