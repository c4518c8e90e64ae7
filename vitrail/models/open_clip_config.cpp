// SPDX-License-Identifier: Apache-2.0
// OpenCLIP's open_clip_config.json and model_configs/.  Absent fields have the defaults of CLIPVisionCfg and
// CLIPTextCfg (open_clip/model.py); options that vitrail lacks are refused.
#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/models/config_formats_internal.h"
#include "vitrail/models/model_args_internal.h"

namespace vitrail::models {
namespace {

using kernels::Activation;

void require_plain_blocks(const JsonFields& fields) {
  require_defaults(fields, {{"qk_norm", false},
                            {"scaled_cosine_attn", false},
                            {"scale_heads", false},
                            {"scale_attn_inner", false},
                            {"scale_attn", false},
                            {"scale_fc", false}});
}

std::string size_text(const std::array<int64_t, 2>& size) { return str(size[0], "×", size[1]); }

// Throws unless `value` is one of the names.
void require_one_of(const std::string& value, std::initializer_list<const char*> names, const std::string& where) {
  if (std::ranges::find(names, value) != names.end()) return;
  std::string known;
  for (const char* name : names) known.append(known.empty() ? "\"" : ", \"").append(name).append("\"");
  throw Error(where, "one of " + known, "\"" + value + "\"");
}

Activation activation_of(const JsonFields& fields, bool quick_gelu) {
  if (quick_gelu) require_defaults(fields, {{"act_kwargs", nullptr}});
  if (quick_gelu) return Activation::quick_gelu;
  const JsonFields args = fields.nested("act_kwargs");
  const std::string approximate = args.text("approximate").value_or("none");
  require_one_of(approximate, {"none", "tanh"}, args.path("approximate"));
  return approximate == "tanh" ? Activation::gelu_tanh : Activation::gelu;
}

double norm_eps_of(const JsonFields& fields) { return fields.nested("norm_kwargs").number("eps").value_or(1e-5); }

int64_t mlp_hidden_of(const JsonFields& fields, int64_t width) {
  const double hidden = static_cast<double>(width) * fields.number("mlp_ratio").value_or(4.0);
  if (!(hidden >= 0 && hidden <= 1 << 24))
    throw Error(fields.path("mlp_ratio"), "a hidden width up to 16777216", str(hidden));
  return static_cast<int64_t>(hidden);
}

// CoCa: of the queries of its AttentionalPooler, the first gives the pooled features, which ln_post normalises.
void read_attentional_pool(const JsonFields& fields, int64_t embed_dim, VisionTransformerConfig& vit) {
  const Json value = fields.at_or_null("attentional_pool");
  if (value.is_null() || value == false) return;
  require_defaults(fields, {{"attentional_pool", true}, {"pool_type", "tok"}, {"final_ln_after_pool", false}});
  vit.global_pool = GlobalPool::map;
  vit.pool_include_prefix = vit.attn_pool_input_norms = true;
  vit.fc_norm = true;
  vit.attn_pool_mlp_ratio = 0;
  vit.attn_pool_num_heads = fields.integer("attn_pooler_heads").value_or(8);
  vit.attn_pool_dim = embed_dim;
}

// open_clip/transformer.py, VisionTransformer.
VisionTransformerConfig read_own_tower(const JsonFields& fields, bool quick_gelu, int64_t embed_dim) {
  if (fields.at_or_null("layers").is_array()) {
    throw Error(fields.path("layers"), "the depth of a Vision Transformer", "the stages of a ResNet");
  }
  require_plain_blocks(fields);
  VisionTransformerConfig vit;
  JsonFields::assign(vit.img_size, fields.size("image_size"));
  JsonFields::assign(vit.patch_size, fields.size("patch_size"));
  JsonFields::assign(vit.embed_dim, fields.integer("width"));
  JsonFields::assign(vit.depth, fields.integer("layers"));
  vit.num_heads = vit.embed_dim / std::max<int64_t>(fields.integer("head_width").value_or(64), 1);
  vit.mlp_hidden = mlp_hidden_of(fields, vit.embed_dim);
  vit.act_layer = activation_of(fields, quick_gelu);
  vit.norm_eps = norm_eps_of(fields);
  vit.init_values = fields.number("ls_init_value");
  vit.patch_drop_rate = fields.number("patch_dropout").value_or(0.0);
  vit.pre_norm = !fields.boolean("no_ln_pre").value_or(false);
  vit.patch_bias = false;
  const std::string pool = fields.text("pool_type").value_or("tok");
  require_one_of(pool, {"tok", "avg"}, fields.path("pool_type"));
  vit.global_pool = pool == "avg" ? GlobalPool::avg : GlobalPool::token;
  vit.fc_norm = fields.boolean("final_ln_after_pool").value_or(false);
  vit.num_classes = embed_dim;
  vit.projection_head = true;
  read_attentional_pool(fields, embed_dim, vit);
  return vit;
}

// timm_pool.  A projection of OpenCLIP's is behind a complete model, whose pooling is replaced and whose norms stay;
// without one the pooling is an argument of the model.
void read_timm_pool(const JsonFields& fields, bool projects, VisionTransformerConfig& vit) {
  const std::string pool = fields.text("timm_pool").value_or("avg");
  if (projects) vit.fc_norm = vit.fc_norm.value_or(vit.global_pool == GlobalPool::avg);
  if (projects && pool.empty()) return;
  require_one_of(pool, {"token", "avg", "map"}, fields.path("timm_pool"));
  if (projects && pool == "map" && vit.global_pool != GlobalPool::map) {
    throw Error(fields.path("timm_pool"), "token or avg, for an architecture without attention pooling", "\"map\"");
  }
  vit.global_pool = pool == "map" ? GlobalPool::map : pool == "avg" ? GlobalPool::avg : GlobalPool::token;
}

// open_clip/timm_model.py.  Without timm_proj, the model's own head is the projection.  "vitrail_args" are as in timm's
// config.json.
VisionTransformerConfig read_timm_tower(const JsonFields& fields, int64_t embed_dim) {
  VisionTransformerConfig vit = registered_config(*fields.text("timm_model_name"), fields.path("timm_model_name"));
  read_model_args(fields.nested("vitrail_args"), vit);
  // An absent field means a linear projection, null none.
  const bool is_given = fields.object().contains("timm_proj");
  const std::string proj = is_given ? fields.text("timm_proj").value_or("") : "linear";
  require_one_of(proj, {"", "linear", "mlp", "none"}, fields.path("timm_proj"));
  const bool projects = proj == "linear" || proj == "mlp";
  read_timm_pool(fields, projects, vit);
  vit.num_classes = proj == "none" ? 0 : embed_dim;
  vit.projection_head = proj != "none";
  vit.head_bias = projects ? fields.boolean("timm_proj_bias").value_or(false) : true;
  if (proj == "mlp") {
    vit.head_hidden = 2 * embed_dim;
    vit.head_act = "gelu";
  }
  JsonFields::assign(vit.drop_path_rate, fields.number("timm_drop_path"));
  JsonFields::assign(vit.patch_drop_rate, fields.number("patch_dropout"));
  if (const auto size = fields.size("image_size"); size && *size != vit.img_size) {
    throw Error(fields.path("image_size"), str(size_text(vit.img_size), ", as the architecture's"), size_text(*size));
  }
  return vit;
}

TextPool pool_of(const JsonFields& fields) {
  const std::string pool = fields.text("pool_type").value_or("argmax");
  if (pool == "argmax") return TextPool::largest_id;
  if (pool == "eos") return TextPool::first_eos;
  if (pool == "last") return TextPool::last;
  throw Error(fields.path("pool_type"), "argmax, eos or last", "\"" + pool + "\"");
}

// "clean" of tokenizer_kwargs.
TextCleaning cleaning_of(const JsonFields& fields, bool simple_tokenizer) {
  const JsonFields args = fields.nested("tokenizer_kwargs");
  const std::string clean = args.text("clean").value_or(simple_tokenizer ? "lower" : "whitespace");
  require_one_of(clean, {"lower", "whitespace", "canonicalize"}, args.path("clean"));
  return clean == "lower"        ? TextCleaning::lower
         : clean == "whitespace" ? TextCleaning::whitespace
                                 : TextCleaning::canonicalize;
}

// "proj_type": the width of the embeddings, or 0 if the pooled token is the embedding.
int64_t projected_width(const JsonFields& fields, int64_t text_width, int64_t embed_dim) {
  const std::string type = fields.text("proj_type").value_or("linear");
  require_one_of(type, {"linear", "none"}, fields.path("proj_type"));
  if (type == "linear") return embed_dim;
  if (text_width == embed_dim) return 0;
  throw Error(fields.path("width"), str(embed_dim, ", as embed_dim, without a projection"), str(text_width));
}

TextTransformerConfig read_text(const JsonFields& fields, bool quick_gelu, int64_t embed_dim) {
  require_plain_blocks(fields);
  require_defaults(fields, {{"final_ln_after_pool", false}});
  TextTransformerConfig text;
  JsonFields::assign(text.vocab_size, fields.integer("vocab_size"));
  JsonFields::assign(text.context_length, fields.integer("context_length"));
  JsonFields::assign(text.embed_dim, fields.integer("width"));
  JsonFields::assign(text.depth, fields.integer("layers"));
  JsonFields::assign(text.num_heads, fields.integer("heads"));
  text.mlp_hidden = mlp_hidden_of(fields, text.embed_dim);
  text.act_layer = activation_of(fields, quick_gelu);
  text.norm_eps = norm_eps_of(fields);
  text.init_values = fields.number("ls_init_value");
  text.causal = !fields.boolean("no_causal_mask").value_or(false);
  text.projection_bias = fields.boolean("proj_bias").value_or(false);
  text.class_token = fields.boolean("embed_cls").value_or(false);
  text.pool = text.class_token ? TextPool::last : pool_of(fields);
  text.pad_token_id = fields.integer("pad_id").value_or(0);
  text.eos_token_id = fields.integer("eos_id").value_or(2);
  text.output_dim = projected_width(fields, text.embed_dim, embed_dim);
  text.simple_tokenizer = fields.text("hf_tokenizer_name").value_or("").empty();
  text.cleaning = cleaning_of(fields, text.simple_tokenizer);
  return text;
}

Preprocessing read_preprocessing(const JsonFields& fields, const VisionTransformerConfig& vit) {
  Preprocessing result;
  result.input_size = vit.img_size;
  result.interpolation = fields.text("interpolation").value_or("bicubic");
  if (result.interpolation == "random") result.interpolation = "bicubic";  // random in training only
  result.crop_pct = 1.0;
  const std::string mode = fields.text("resize_mode").value_or("shortest");
  require_one_of(mode, {"shortest", "squash", "longest"}, fields.path("resize_mode"));
  result.crop_mode = mode == "shortest" ? "center" : mode == "longest" ? "border" : mode;
  if (mode == "longest") result.fill_color = fields.integer("fill_color").value_or(0);
  result.mean = fields.numbers("mean").value_or(std::vector<double>{0.48145466, 0.4578275, 0.40821073});
  result.std = fields.numbers("std").value_or(std::vector<double>{0.26862954, 0.26130258, 0.27577711});
  return result;
}

}  // namespace

bool is_open_clip(const JsonFields& file) {
  return file.has("model_cfg") || (file.has("vision_cfg") && file.has("text_cfg"));
}

std::optional<std::string> open_clip_model(const std::string& name) {
  static const Json models = Json::parse(open_clip_models().front().text);
  const auto found = models.find(name);
  return found == models.end() ? std::nullopt : std::optional(found->dump());
}

ModelConfig read_open_clip_config(const Json& json, const std::string& where) {
  const JsonFields file(json, where), model = file.has("model_cfg") ? file.nested("model_cfg") : file;
  for (const char* part : {"vision_cfg", "text_cfg"}) {
    if (!model.has(part)) throw Error(model.path(part), "the tower's options", "none");
  }
  const bool quick_gelu = model.boolean("quick_gelu").value_or(false);
  const int64_t embed_dim = model.integer("embed_dim").value_or(512);
  if (embed_dim < 1 || embed_dim > 1 << 20) throw Error(model.path("embed_dim"), "1 to 1048576", str(embed_dim));
  const JsonFields vision = model.nested("vision_cfg");
  const auto timm = vision.text("timm_model_name");
  ModelConfig config;
  config.architecture = timm.value_or("open_clip");
  config.vit = timm ? read_timm_tower(vision, embed_dim) : read_own_tower(vision, quick_gelu, embed_dim);
  if (!timm && config.vit.fc_norm == true) {  // ln_post is behind the pooling
    config.key_map = config.vit.global_pool == GlobalPool::map ? "open_clip_coca" : "open_clip_fc_norm";
  }
  const JsonFields text = model.nested("text_cfg");
  if (!text.has("hf_model_name")) {  // a text tower of transformers is not supported: the image tower is alone
    config.text = read_text(text, quick_gelu, embed_dim);
    if (model.has("init_logit_bias")) config.text->loss = DualLoss::sigmoid;
  }
  config.preprocessing = read_preprocessing(file.nested("preprocess_cfg"), config.vit);
  return config;
}

}  // namespace vitrail::models
