// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/model_args_internal.h"

#include "vitrail/base/error.h"

namespace vitrail::models {
namespace {

using Config = VisionTransformerConfig;

void describe_position_interpolation(Fields& f, nn::PositionResampling& interpolation) {
  f.boolean("antialias", interpolation.antialias);
  f.number("offset", interpolation.offset);
  if (f.reads() || interpolation.bilinear) f.boolean("bilinear", interpolation.bilinear);
  if (f.reads() || interpolation.align_corners) f.boolean("align_corners", interpolation.align_corners);
}

void describe_image_and_pooling(Fields& f, Config& c) {
  f.size("img_size", c.img_size);
  f.size("patch_size", c.patch_size);
  f.integer("in_chans", c.in_chans);
  f.integer("num_classes", c.num_classes);
  f.choice<GlobalPool>("global_pool", c.global_pool,
                       {{"token", GlobalPool::token},
                        {"avg", GlobalPool::avg},
                        {"token_avg", GlobalPool::token_avg},
                        {"map", GlobalPool::map},
                        {"", GlobalPool::none}});
  f.boolean("pool_include_prefix", c.pool_include_prefix);
  f.integer("attn_pool_num_heads", c.attn_pool_num_heads);
  f.number("attn_pool_mlp_ratio", c.attn_pool_mlp_ratio);
  f.boolean("attn_pool_q_proj", c.attn_pool_q_proj);
  f.boolean("attn_pool_qkv_bias", c.attn_pool_qkv_bias);
  f.integer("attn_pool_dim", c.attn_pool_dim);
  f.boolean("attn_pool_input_norms", c.attn_pool_input_norms);
}

void describe_block(Fields& f, Config& c) {
  f.integer("embed_dim", c.embed_dim);
  f.integer("depth", c.depth);
  f.integer("num_heads", c.num_heads);
  f.integer("head_dim", c.head_dim);
  f.number("mlp_ratio", c.mlp_ratio);
  f.integer("mlp_hidden", c.mlp_hidden);
  f.boolean("qkv_bias", c.qkv_bias);
  f.number("qk_scale", c.qk_scale);
  f.boolean("qk_norm", c.qk_norm);
  f.choice<AttentionType>("attn_type", c.attn_type,
                          {{"", AttentionType::plain}, {"rope", AttentionType::plain}, {"eva", AttentionType::eva}});
  f.boolean("proj_bias", c.proj_bias);
  f.choice<nn::NormLayer>("norm_layer", c.norm_layer,
                          {{"layernorm", nn::NormLayer::layer_norm}, {"rmsnorm", nn::NormLayer::rms_norm}});
  f.boolean("scale_attn_inner", c.scale_attn_inner);
  f.boolean("norm_first", c.norm_first);
  f.boolean("use_post_norm", c.use_post_norm);
  f.number("norm_eps", c.norm_eps);
  f.boolean("pre_norm", c.pre_norm);
  f.boolean("patch_bias", c.patch_bias);
  f.boolean("final_norm", c.final_norm);
  f.boolean("fc_norm", c.fc_norm);
  f.number("init_values", c.init_values);
}

void describe_position(Fields& f, Config& c) {
  f.boolean("class_token", c.class_token);
  f.integer("reg_tokens", c.reg_tokens);
  f.boolean("dist_token", c.dist_token);
  f.choice<PositionEmbedding>("pos_embed", c.pos_embed,
                              {{"learn", PositionEmbedding::learned},
                               {"sinusoidal", PositionEmbedding::sinusoidal},
                               {"sincos2d", PositionEmbedding::sincos2d},
                               {"none", PositionEmbedding::none}});
  f.object("pos_interp", [&](Fields& inner) { describe_position_interpolation(inner, c.pos_interp); });
  f.boolean("no_embed_class", c.no_embed_class);
  f.boolean("no_embed_reg", c.no_embed_reg);
  f.boolean("use_rel_pos_bias", c.use_rel_pos_bias);
  f.boolean("use_shared_rel_pos_bias", c.use_shared_rel_pos_bias);
  f.choice<nn::RelativePositionResampling>("rel_pos_interp", c.rel_pos_interp,
                                           {{"geometric", nn::RelativePositionResampling::geometric},
                                            {"bilinear", nn::RelativePositionResampling::bilinear}});
  f.boolean("use_rot_pos_emb", c.use_rot_pos_emb);
  f.choice<nn::RotaryType>(
      "rope_type", c.rope_type,
      {{"cat", nn::RotaryType::cat}, {"dinov3", nn::RotaryType::dinov3}, {"mixed", nn::RotaryType::mixed}});
  f.number("rope_temperature", c.rope_temperature);
  f.number("rope_grid_offset", c.rope_grid_offset);
  f.choice<GridIndexing>("rope_grid_indexing", c.rope_grid_indexing,
                         {{"ij", GridIndexing::ij}, {"xy", GridIndexing::xy}});
  f.boolean("rope_rotate_half", c.rope_rotate_half);
  f.size("ref_feat_shape", c.ref_feat_shape);
  f.numbers("rope_periods", c.rope_periods);
}

void describe_patch_and_mlp(Fields& f, Config& c) {
  using kernels::Activation;
  f.boolean("dynamic_img_size", c.dynamic_img_size);
  f.boolean("allow_remainder", c.allow_remainder);
  f.choice<PatchNorm>(
      "patch_norm", c.patch_norm,
      {{"none", PatchNorm::none}, {"pre", PatchNorm::pre}, {"post", PatchNorm::post}, {"both", PatchNorm::both}});
  f.choice<Activation>("act_layer", c.act_layer,
                       {{"gelu", Activation::gelu},
                        {"gelu_tanh", Activation::gelu_tanh},
                        {"quick_gelu", Activation::quick_gelu},
                        {"relu", Activation::relu},
                        {"silu", Activation::silu}});
  f.choice<MlpLayer>(
      "mlp_layer", c.mlp_layer,
      {{"mlp", MlpLayer::mlp}, {"swiglu", MlpLayer::swiglu}, {"swiglu_packed", MlpLayer::swiglu_packed}});
  f.boolean("swiglu_mlp", c.swiglu_mlp);
  f.integer("swiglu_align_to", c.swiglu_align_to);
  f.boolean("scale_mlp", c.scale_mlp);
}

void describe_head_and_rate(Fields& f, Config& c) {
  f.integer("head_hidden", c.head_hidden);
  f.text("head_act", c.head_act);
  f.boolean("projection_head", c.projection_head);
  f.boolean("head_bias", c.head_bias);
  f.number("drop_rate", c.drop_rate);
  f.number("pos_drop_rate", c.pos_drop_rate);
  f.number("patch_drop_rate", c.patch_drop_rate);
  f.number("attn_drop_rate", c.attn_drop_rate);
  f.number("proj_drop_rate", c.proj_drop_rate);
  f.number("drop_path_rate", c.drop_path_rate);
  f.text("weight_init", c.weight_init);
}

// The names of timm's VisionTransformer and Eva for fields above, which are never written.
void describe_renamed(Fields& f, Config& c) {
  f.boolean("scale_attn_norm", c.scale_attn_inner);
  f.boolean("scale_mlp_norm", c.scale_mlp);
  f.integer("num_reg_tokens", c.reg_tokens);
  f.boolean("use_pre_transformer_norm", c.pre_norm);
  f.boolean("use_post_transformer_norm", c.final_norm);
  f.boolean("use_fc_norm", c.fc_norm);
  std::optional<bool> learned, fused;
  f.boolean("use_abs_pos_emb", learned);
  if (learned) c.pos_embed = *learned ? PositionEmbedding::learned : PositionEmbedding::none;
  f.boolean("qkv_fused", fused);  // without effect: separate matrices are joined when they are read
}

void describe_model_args(Fields& f, Config& c) {
  describe_image_and_pooling(f, c);
  describe_block(f, c);
  describe_position(f, c);
  describe_patch_and_mlp(f, c);
  describe_head_and_rate(f, c);
  if (f.reads()) describe_renamed(f, c);
}

// Arguments of timm's VisionTransformer whose default is the only value that is supported.
const std::map<std::string, Json>& fixed_arguments() {
  static const std::map<std::string, Json> table{
      {"dynamic_img_pad", false}, {"fix_init", false}, {"embed_norm_layer", nullptr}};
  return table;
}

}  // namespace

void read_model_args(const JsonFields& args, Config& config, const std::vector<std::string>& others) {
  Json given = args.object();
  for (const auto& [name, only] : fixed_arguments()) {
    const Json value = args.at_or_null(name.c_str());
    if (!value.is_null() && value != only)
      throw Error(args.path(name), only.dump() + " (timm's default; other values are not supported)",
                  value.dump().substr(0, 60));
    given.erase(name);
  }
  std::vector<Error> problems;
  JsonFieldReader reader(given, args.where() + ": ", problems, JsonNull::absent);
  describe_model_args(reader, config);
  reader.finish(others);
  if (!problems.empty()) throw problems.front();
}

Json write_model_args(const Config& config, const Config& base) {
  Json result = json_of_fields(describe_model_args, config);
  const Json before = json_of_fields(describe_model_args, base);
  for (const auto& item : before.items()) {
    if (result[item.key()] == item.value()) result.erase(item.key());
  }
  return result;
}

}  // namespace vitrail::models
