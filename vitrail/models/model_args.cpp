// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/model_args_internal.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/base/near_names_internal.h"
#include "vitrail/base/text.h"

namespace vitrail::models {
namespace {

using Config = VisionTransformerConfig;

// A field of model_args with its reader and writer.
struct Field {
  const char* name;
  std::function<void(const JsonFields&, Config&)> read;
  std::function<Json(const Config&)> write;
};

Field integer(const char* name, int64_t Config::*member) {
  return {name, [=](const JsonFields& f, Config& c) { JsonFields::assign(c.*member, f.integer(name)); },
          [=](const Config& c) { return Json(c.*member); }};
}
Field number(const char* name, double Config::*member) {
  return {name, [=](const JsonFields& f, Config& c) { JsonFields::assign(c.*member, f.number(name)); },
          [=](const Config& c) { return Json(c.*member); }};
}
Field boolean(const char* name, bool Config::*member) {
  return {name, [=](const JsonFields& f, Config& c) { JsonFields::assign(c.*member, f.boolean(name)); },
          [=](const Config& c) { return Json(c.*member); }};
}
Field text(const char* name, std::string Config::*member) {
  return {name, [=](const JsonFields& f, Config& c) { JsonFields::assign(c.*member, f.text(name)); },
          [=](const Config& c) { return Json(c.*member); }};
}
Field size(const char* name, std::array<int64_t, 2> Config::*member) {
  return {name, [=](const JsonFields& f, Config& c) { JsonFields::assign(c.*member, f.size(name)); },
          [=](const Config& c) { return (c.*member)[0] == (c.*member)[1] ? Json((c.*member)[0]) : Json(c.*member); }};
}
template <class T, class Read>
Field optional(const char* name, std::optional<T> Config::*member, Read read) {
  return {name,
          [=](const JsonFields& f, Config& c) {
            if (const auto value = (f.*read)(name)) c.*member = value;
          },
          [=](const Config& c) { return c.*member ? Json(*(c.*member)) : Json(nullptr); }};
}

// A field with an enumeration of names.
template <class E>
Field choice(const char* name, E Config::*member, std::vector<std::pair<const char*, E>> values) {
  return {name,
          [=](const JsonFields& f, Config& c) {
            const auto given = f.text(name);
            if (!given) return;
            std::string known;
            for (const auto& [spelling, value] : values) {
              if (*given == spelling) {
                c.*member = value;
                return;
              }
              known += (known.empty() ? "\"" : ", \"") + std::string(spelling) + "\"";
            }
            throw Error(f.path(name), "one of " + known, "\"" + *given + "\"");
          },
          [=](const Config& c) {
            for (const auto& [spelling, value] : values) {
              if (value == c.*member) return Json(spelling);
            }
            return Json(nullptr);
          }};
}

// A second name of a field: it is read, and never written.
Field renamed(Field field) {
  field.write = [](const Config&) { return Json(); };
  return field;
}

// A field without an effect.
Field accepted(const char* name) {
  return renamed({name, [](const JsonFields&, Config&) {}, {}});
}

Field position_interpolation() {
  return {"pos_interp",
          [](const JsonFields& f, Config& c) {
            if (!f.has("pos_interp")) return;
            const JsonFields inner(f.at("pos_interp"), f.path("pos_interp"));
            for (const auto& item : inner.object().items()) {
              if (item.key() != "antialias" && item.key() != "offset" && item.key() != "bilinear") {
                throw Error(inner.where(), "antialias, bilinear and offset", "\"" + item.key() + "\"");
              }
            }
            JsonFields::assign(c.pos_interp.antialias, inner.boolean("antialias"));
            JsonFields::assign(c.pos_interp.bilinear, inner.boolean("bilinear"));
            JsonFields::assign(c.pos_interp.offset, inner.number("offset"));
          },
          [](const Config& c) {
            Json fields{{"antialias", c.pos_interp.antialias}, {"offset", c.pos_interp.offset}};
            if (c.pos_interp.bilinear) fields["bilinear"] = true;
            return fields;
          }};
}

std::vector<Field> image_and_pooling_fields() {
  return {
      size("img_size", &Config::img_size),
      size("patch_size", &Config::patch_size),
      integer("in_chans", &Config::in_chans),
      integer("num_classes", &Config::num_classes),
      choice<GlobalPool>("global_pool", &Config::global_pool,
                         {{"token", GlobalPool::token},
                          {"avg", GlobalPool::avg},
                          {"token_avg", GlobalPool::token_avg},
                          {"map", GlobalPool::map},
                          {"", GlobalPool::none}}),
      boolean("pool_include_prefix", &Config::pool_include_prefix),
      optional("attn_pool_num_heads", &Config::attn_pool_num_heads, &JsonFields::integer),
      optional("attn_pool_mlp_ratio", &Config::attn_pool_mlp_ratio, &JsonFields::number),
      boolean("attn_pool_q_proj", &Config::attn_pool_q_proj),
      boolean("attn_pool_qkv_bias", &Config::attn_pool_qkv_bias),
      integer("attn_pool_dim", &Config::attn_pool_dim),
      boolean("attn_pool_input_norms", &Config::attn_pool_input_norms),
  };
}

std::vector<Field> block_fields() {
  return {
      integer("embed_dim", &Config::embed_dim),
      integer("depth", &Config::depth),
      integer("num_heads", &Config::num_heads),
      optional("head_dim", &Config::head_dim, &JsonFields::integer),
      number("mlp_ratio", &Config::mlp_ratio),
      optional("mlp_hidden", &Config::mlp_hidden, &JsonFields::integer),
      boolean("qkv_bias", &Config::qkv_bias),
      optional("qk_scale", &Config::qk_scale, &JsonFields::number),
      boolean("qk_norm", &Config::qk_norm),
      choice<AttentionType>("attn_type", &Config::attn_type,
                            {{"", AttentionType::plain}, {"rope", AttentionType::plain}, {"eva", AttentionType::eva}}),
      boolean("proj_bias", &Config::proj_bias),
      choice<nn::NormLayer>("norm_layer", &Config::norm_layer,
                            {{"layernorm", nn::NormLayer::layer_norm}, {"rmsnorm", nn::NormLayer::rms_norm}}),
      accepted("qkv_fused"),  // separate matrices are joined when they are read
      boolean("scale_attn_inner", &Config::scale_attn_inner),
      boolean("norm_first", &Config::norm_first),
      boolean("use_post_norm", &Config::use_post_norm),
      number("norm_eps", &Config::norm_eps),
      boolean("pre_norm", &Config::pre_norm),
      optional("patch_bias", &Config::patch_bias, &JsonFields::boolean),
      boolean("final_norm", &Config::final_norm),
      optional("fc_norm", &Config::fc_norm, &JsonFields::boolean),
      optional("init_values", &Config::init_values, &JsonFields::number),
  };
}

std::vector<Field> position_fields() {
  return {
      boolean("class_token", &Config::class_token),
      integer("reg_tokens", &Config::reg_tokens),
      boolean("dist_token", &Config::dist_token),
      choice<PositionEmbedding>("pos_embed", &Config::pos_embed,
                                {{"learn", PositionEmbedding::learned},
                                 {"sinusoidal", PositionEmbedding::sinusoidal},
                                 {"sincos2d", PositionEmbedding::sincos2d},
                                 {"none", PositionEmbedding::none}}),
      position_interpolation(),
      boolean("no_embed_class", &Config::no_embed_class),
      boolean("no_embed_reg", &Config::no_embed_reg),
      boolean("use_rel_pos_bias", &Config::use_rel_pos_bias),
      boolean("use_shared_rel_pos_bias", &Config::use_shared_rel_pos_bias),
      choice<nn::RelativePositionResampling>("rel_pos_interp", &Config::rel_pos_interp,
                                             {{"geometric", nn::RelativePositionResampling::geometric},
                                              {"bilinear", nn::RelativePositionResampling::bilinear}}),
      boolean("use_rot_pos_emb", &Config::use_rot_pos_emb),
      choice<nn::RotaryType>(
          "rope_type", &Config::rope_type,
          {{"cat", nn::RotaryType::cat}, {"dinov3", nn::RotaryType::dinov3}, {"mixed", nn::RotaryType::mixed}}),
      number("rope_temperature", &Config::rope_temperature),
      number("rope_grid_offset", &Config::rope_grid_offset),
      choice<GridIndexing>("rope_grid_indexing", &Config::rope_grid_indexing,
                           {{"ij", GridIndexing::ij}, {"xy", GridIndexing::xy}}),
      boolean("rope_rotate_half", &Config::rope_rotate_half),
      optional("ref_feat_shape", &Config::ref_feat_shape, &JsonFields::size),
      {"rope_periods",
       [](const JsonFields& f, Config& c) { JsonFields::assign(c.rope_periods, f.numbers("rope_periods")); },
       [](const Config& c) { return Json(c.rope_periods); }},
  };
}

std::vector<Field> patch_and_mlp_fields() {
  using kernels::Activation;
  return {
      boolean("dynamic_img_size", &Config::dynamic_img_size),
      boolean("allow_remainder", &Config::allow_remainder),
      choice<PatchNorm>(
          "patch_norm", &Config::patch_norm,
          {{"none", PatchNorm::none}, {"pre", PatchNorm::pre}, {"post", PatchNorm::post}, {"both", PatchNorm::both}}),
      choice<Activation>("act_layer", &Config::act_layer,
                         {{"gelu", Activation::gelu},
                          {"gelu_tanh", Activation::gelu_tanh},
                          {"quick_gelu", Activation::quick_gelu},
                          {"relu", Activation::relu},
                          {"silu", Activation::silu}}),
      choice<MlpLayer>(
          "mlp_layer", &Config::mlp_layer,
          {{"mlp", MlpLayer::mlp}, {"swiglu", MlpLayer::swiglu}, {"swiglu_packed", MlpLayer::swiglu_packed}}),
      boolean("swiglu_mlp", &Config::swiglu_mlp),
      integer("swiglu_align_to", &Config::swiglu_align_to),
      boolean("scale_mlp", &Config::scale_mlp),
  };
}

std::vector<Field> head_and_rate_fields() {
  return {
      integer("head_hidden", &Config::head_hidden),
      text("head_act", &Config::head_act),
      boolean("projection_head", &Config::projection_head),
      optional("head_bias", &Config::head_bias, &JsonFields::boolean),
      number("drop_rate", &Config::drop_rate),
      number("pos_drop_rate", &Config::pos_drop_rate),
      number("patch_drop_rate", &Config::patch_drop_rate),
      number("attn_drop_rate", &Config::attn_drop_rate),
      number("proj_drop_rate", &Config::proj_drop_rate),
      number("drop_path_rate", &Config::drop_path_rate),
      text("weight_init", &Config::weight_init),
  };
}

// The names of timm's VisionTransformer and Eva for fields above.
std::vector<Field> renamed_fields() {
  return {
      renamed(boolean("scale_attn_norm", &Config::scale_attn_inner)),
      renamed(boolean("scale_mlp_norm", &Config::scale_mlp)),
      renamed(integer("num_reg_tokens", &Config::reg_tokens)),
      renamed(boolean("use_pre_transformer_norm", &Config::pre_norm)),
      renamed(boolean("use_post_transformer_norm", &Config::final_norm)),
      renamed(optional("use_fc_norm", &Config::fc_norm, &JsonFields::boolean)),
      renamed({"use_abs_pos_emb",
               [](const JsonFields& f, Config& c) {
                 if (const auto learned = f.boolean("use_abs_pos_emb"))
                   c.pos_embed = *learned ? PositionEmbedding::learned : PositionEmbedding::none;
               },
               {}}),
  };
}

const std::vector<Field>& fields() {
  static const std::vector<Field> table = [] {
    std::vector<Field> all;
    for (const auto& group : {image_and_pooling_fields(), block_fields(), position_fields(), patch_and_mlp_fields(),
                              head_and_rate_fields(), renamed_fields()})
      all.insert(all.end(), group.begin(), group.end());
    return all;
  }();
  return table;
}

// Arguments of timm's VisionTransformer whose default is the only value that is supported.
const std::map<std::string, Json>& fixed_arguments() {
  static const std::map<std::string, Json> table{
      {"dynamic_img_pad", false}, {"fix_init", false}, {"embed_norm_layer", nullptr}};
  return table;
}

bool is_fixed_argument(const JsonFields& args, const std::string& name, const Json& value) {
  const auto fixed = fixed_arguments().find(name);
  if (fixed == fixed_arguments().end()) return false;
  if (!value.is_null() && value != fixed->second) {
    throw Error(args.path(name), fixed->second.dump() + " (timm's default; other values are not supported)",
                value.dump().substr(0, 60));
  }
  return true;
}

}  // namespace

void read_model_args(const JsonFields& args, Config& config, const std::vector<std::string>& others) {
  std::vector<std::string> known = others;
  for (const Field& field : fields()) known.emplace_back(field.name);
  for (const auto& item : args.object().items()) {
    const std::string& name = item.key();
    if (is_fixed_argument(args, name, item.value())) continue;
    if (std::find(known.begin() + std::ssize(others), known.end(), name) != known.end()) continue;
    throw Error(args.where(), "one of the keys " + join(known, " "), "\"" + name + "\"" + did_you_mean(name, known));
  }
  for (const Field& field : fields()) field.read(args, config);
}

Json write_model_args(const Config& config, const Config& base) {
  Json result = Json::object();
  for (const Field& field : fields()) {
    const Json value = field.write(config);
    if (value != field.write(base)) result[field.name] = value;
  }
  return result;
}

}  // namespace vitrail::models
