// SPDX-License-Identifier: Apache-2.0
// Hugging Face transformers' text_config of dual models.  Absent fields have the defaults of CLIPTextConfig and
// SiglipTextConfig.
#include "vitrail/models/config_formats_internal.h"

namespace vitrail::models {
namespace {

// Files of before transformers' correction (pull request 24773) have eos_token_id 2, which no text has.
void read_pooling(const JsonFields& file, TextTransformerConfig& text) {
  text.eos_token_id = file.integer("eos_token_id").value_or(49407);
  text.pool = text.eos_token_id == 2 ? TextPool::largest_id : TextPool::first_eos;
}

}  // namespace

TextTransformerConfig read_clip_text(const JsonFields& file, int64_t projection_dim) {
  TextTransformerConfig text;
  text.vocab_size = file.integer("vocab_size").value_or(49408);
  text.context_length = file.integer("max_position_embeddings").value_or(77);
  text.embed_dim = file.integer("hidden_size").value_or(512);
  text.depth = file.integer("num_hidden_layers").value_or(12);
  text.num_heads = file.integer("num_attention_heads").value_or(8);
  text.mlp_hidden = file.integer("intermediate_size").value_or(2048);
  text.norm_eps = file.number("layer_norm_eps").value_or(1e-5);
  text.act_layer = read_hidden_act(file, "quick_gelu");
  text.output_dim = projection_dim;
  read_pooling(file, text);
  return text;
}

TextTransformerConfig read_siglip_text(const JsonFields& file) {
  TextTransformerConfig text;
  text.vocab_size = file.integer("vocab_size").value_or(32000);
  text.context_length = file.integer("max_position_embeddings").value_or(64);
  text.embed_dim = file.integer("hidden_size").value_or(768);
  text.depth = file.integer("num_hidden_layers").value_or(12);
  text.num_heads = file.integer("num_attention_heads").value_or(12);
  text.mlp_hidden = file.integer("intermediate_size").value_or(3072);
  text.norm_eps = file.number("layer_norm_eps").value_or(1e-6);
  text.act_layer = read_hidden_act(file, "gelu_pytorch_tanh");
  text.output_dim = file.integer("projection_size").value_or(text.embed_dim);
  text.projection_bias = true;
  text.causal = false;
  text.pool = TextPool::last;
  text.loss = DualLoss::sigmoid;
  return text;
}

}  // namespace vitrail::models
