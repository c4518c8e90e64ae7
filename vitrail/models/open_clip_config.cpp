// SPDX-License-Identifier: Apache-2.0
// OpenCLIP's open_clip_config.json.  Absent fields have the defaults of CLIPVisionCfg and CLIPTextCfg
// (open_clip/model.py); options that vitrail lacks are refused.
#include "vitrail/base/error.h"
#include "vitrail/models/config_formats_internal.h"

namespace vitrail::models {
namespace {

using kernels::Activation;

// Options that are supported at one value alone: their default.
void require_defaults(const JsonFields& fields, std::initializer_list<std::pair<const char*, Json>> defaults) {
  for (const auto& [name, value] : defaults) {
    if (fields.has(name) && fields.at(name) != value)
      throw Error(fields.path(name), value.dump(), fields.at(name).dump());
  }
}

void require_plain_blocks(const JsonFields& fields) {
  require_defaults(fields, {{"qk_norm", false},
                            {"scaled_cosine_attn", false},
                            {"scale_heads", false},
                            {"scale_attn_inner", false},
                            {"scale_attn", false},
                            {"scale_fc", false},
                            {"final_ln_after_pool", false},
                            {"act_kwargs", nullptr}});
}

double norm_eps_of(const JsonFields& fields) {
  if (!fields.has("norm_kwargs")) return 1e-5;
  return JsonFields(fields.at("norm_kwargs"), fields.path("norm_kwargs")).number("eps").value_or(1e-5);
}

int64_t mlp_hidden_of(const JsonFields& fields, int64_t width) {
  return static_cast<int64_t>(static_cast<double>(width) * fields.number("mlp_ratio").value_or(4.0));
}

void read_vision(const JsonFields& fields, VisionTransformerConfig& vit) {
  if (fields.text("timm_model_name") || fields.at_or_null("layers").is_array()) {
    throw Error(fields.where(), "OpenCLIP's own Vision Transformer",
                fields.text("timm_model_name") ? "timm's " + *fields.text("timm_model_name") : "a ResNet");
  }
  require_plain_blocks(fields);
  require_defaults(fields, {{"attentional_pool", false}, {"no_ln_pre", false}, {"output_tokens", false}});
  JsonFields::assign(vit.img_size, fields.size("image_size"));
  JsonFields::assign(vit.patch_size, fields.size("patch_size"));
  JsonFields::assign(vit.embed_dim, fields.integer("width"));
  JsonFields::assign(vit.depth, fields.integer("layers"));
  vit.num_heads = vit.embed_dim / std::max<int64_t>(fields.integer("head_width").value_or(64), 1);
  vit.mlp_hidden = mlp_hidden_of(fields, vit.embed_dim);
  vit.norm_eps = norm_eps_of(fields);
  vit.init_values = fields.number("ls_init_value");
  vit.patch_drop_rate = fields.number("patch_dropout").value_or(0.0);
  vit.pre_norm = true;
  vit.fc_norm = false;
  const std::string pool = fields.text("pool_type").value_or("tok");
  if (pool != "tok" && pool != "avg") throw Error(fields.path("pool_type"), "tok or avg", "\"" + pool + "\"");
  vit.global_pool = pool == "avg" ? GlobalPool::avg : GlobalPool::token;
}

TextPool pool_of(const JsonFields& fields) {
  const std::string pool = fields.text("pool_type").value_or("argmax");
  if (pool == "argmax") return TextPool::largest_id;
  if (pool == "eos") return TextPool::first_eos;
  if (pool == "last") return TextPool::last;
  throw Error(fields.path("pool_type"), "argmax, eos or last", "\"" + pool + "\"");
}

TextTransformerConfig read_text(const JsonFields& fields) {
  if (const auto name = fields.text("hf_model_name")) {
    throw Error(fields.path("hf_model_name"), "OpenCLIP's own text tower", "\"" + *name + "\" of transformers");
  }
  require_plain_blocks(fields);
  require_defaults(fields, {{"embed_cls", false}, {"ls_init_value", nullptr}, {"proj_type", "linear"}});
  TextTransformerConfig text;
  JsonFields::assign(text.vocab_size, fields.integer("vocab_size"));
  JsonFields::assign(text.context_length, fields.integer("context_length"));
  JsonFields::assign(text.embed_dim, fields.integer("width"));
  JsonFields::assign(text.depth, fields.integer("layers"));
  JsonFields::assign(text.num_heads, fields.integer("heads"));
  text.mlp_hidden = mlp_hidden_of(fields, text.embed_dim);
  text.norm_eps = norm_eps_of(fields);
  text.causal = !fields.boolean("no_causal_mask").value_or(false);
  text.projection_bias = fields.boolean("proj_bias").value_or(false);
  text.pool = pool_of(fields);
  text.eos_token_id = fields.integer("eos_id").value_or(2);
  return text;
}

Preprocessing read_preprocessing(const JsonFields& fields, const VisionTransformerConfig& vit) {
  Preprocessing result;
  result.input_size = vit.img_size;
  result.interpolation = fields.text("interpolation").value_or("bicubic");
  result.crop_pct = 1.0;
  const std::string mode = fields.text("resize_mode").value_or("shortest");
  if (mode != "shortest" && mode != "squash" && mode != "longest") {
    throw Error(fields.path("resize_mode"), "shortest, squash or longest", "\"" + mode + "\"");
  }
  result.crop_mode = mode == "shortest" ? "center" : mode == "longest" ? "border" : mode;
  result.mean = fields.numbers("mean").value_or(std::vector<double>{0.48145466, 0.4578275, 0.40821073});
  result.std = fields.numbers("std").value_or(std::vector<double>{0.26862954, 0.26130258, 0.27577711});
  return result;
}

}  // namespace

bool is_open_clip(const JsonFields& file) { return file.has("model_cfg"); }

ModelConfig read_open_clip_config(const Json& json, const std::string& where) {
  const JsonFields file(json, where), model(file.at("model_cfg"), file.path("model_cfg"));
  for (const char* part : {"vision_cfg", "text_cfg"}) {
    if (!model.has(part)) throw Error(model.path(part), "the tower's options", "none");
  }
  require_defaults(model, {{"multimodal_cfg", nullptr}});
  ModelConfig config;
  config.architecture = "open_clip";
  read_vision(JsonFields(model.at("vision_cfg"), model.path("vision_cfg")), config.vit);
  config.text = read_text(JsonFields(model.at("text_cfg"), model.path("text_cfg")));
  config.vit.num_classes = config.text->output_dim = model.integer("embed_dim").value_or(512);
  config.vit.projection_head = true;
  config.vit.act_layer = config.text->act_layer =
      model.boolean("quick_gelu").value_or(false) ? Activation::quick_gelu : Activation::gelu;
  if (model.has("init_logit_bias")) config.text->loss = DualLoss::sigmoid;
  const Json preprocess = file.has("preprocess_cfg") ? file.at("preprocess_cfg") : Json::object();
  config.preprocessing = read_preprocessing(JsonFields(preprocess, file.path("preprocess_cfg")), config.vit);
  return config;
}

}  // namespace vitrail::models
