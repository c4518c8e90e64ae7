// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/timm_form_internal.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "vitrail/models/derived_config_internal.h"
#include "vitrail/models/model_args_internal.h"
#include "vitrail/ops/elementwise.h"

namespace vitrail::models {
namespace {

using Config = VisionTransformerConfig;

// The classes of timm, whose arguments and names of tensors differ.
enum class TimmClass { vision_transformer, eva, beit };

TimmClass timm_class_of(const Config& config) {
  if (config.use_rel_pos_bias || config.use_shared_rel_pos_bias) return TimmClass::beit;
  if (config.attn_type == AttentionType::eva || config.use_rot_pos_emb) return TimmClass::eva;
  return TimmClass::vision_transformer;
}

// Fields that are arguments of timm's class with the same meaning: their names there, "" for the same name.
const std::map<std::string, std::string>& timm_arguments(TimmClass of) {
  using Names = std::map<std::string, std::string>;
  static const Names common{
      {"img_size", ""},      {"patch_size", ""},     {"in_chans", ""},       {"num_classes", ""},
      {"global_pool", ""},   {"embed_dim", ""},      {"depth", ""},          {"num_heads", ""},
      {"mlp_ratio", ""},     {"qkv_bias", ""},       {"init_values", ""},    {"drop_rate", ""},
      {"pos_drop_rate", ""}, {"attn_drop_rate", ""}, {"proj_drop_rate", ""}, {"drop_path_rate", ""}};
  const auto with = [](Names names) {
    names.insert(common.begin(), common.end());
    return names;
  };
  static const std::map<TimmClass, Names> table{
      {TimmClass::vision_transformer, with({{"qk_norm", ""},
                                            {"pre_norm", ""},
                                            {"final_norm", ""},
                                            {"fc_norm", ""},
                                            {"class_token", ""},
                                            {"reg_tokens", ""},
                                            {"no_embed_class", ""},
                                            {"pos_embed", ""},
                                            {"act_layer", ""},
                                            {"patch_drop_rate", ""},
                                            {"dynamic_img_size", ""},
                                            {"pool_include_prefix", ""},
                                            {"proj_bias", ""},
                                            {"norm_layer", ""},
                                            {"scale_attn_inner", "scale_attn_norm"},
                                            {"scale_mlp", "scale_mlp_norm"}})},
      {TimmClass::eva, with({{"pre_norm", "use_pre_transformer_norm"},
                             {"fc_norm", "use_fc_norm"},
                             {"class_token", ""},
                             {"reg_tokens", "num_reg_tokens"},
                             {"no_embed_class", ""},
                             {"pos_embed", "use_abs_pos_emb"},
                             {"patch_drop_rate", ""},
                             {"dynamic_img_size", ""},
                             {"swiglu_mlp", ""},
                             {"swiglu_align_to", ""},
                             {"scale_mlp", ""},
                             {"scale_attn_inner", ""},
                             {"use_rot_pos_emb", ""},
                             {"rope_type", ""},
                             {"rope_temperature", ""},
                             {"rope_grid_offset", ""},
                             {"rope_grid_indexing", ""},
                             {"rope_rotate_half", ""},
                             {"ref_feat_shape", ""},
                             {"attn_pool_num_heads", ""},
                             {"attn_pool_mlp_ratio", ""}})},
      {TimmClass::beit, with({{"fc_norm", "use_fc_norm"},
                              {"pos_embed", "use_abs_pos_emb"},
                              {"use_rel_pos_bias", ""},
                              {"use_shared_rel_pos_bias", ""}})}};
  return table.at(of);
}

// Fields that do not change the name or shape of any parameter: timm can open the file without them, with slightly
// different outputs, or for images of one size alone.
bool is_harmless(TimmClass of, const std::string& field) {
  return field == "norm_eps" || field == "pos_interp" || field == "rel_pos_interp" || field == "weight_init" ||
         field == "rope_periods" || (field == "dynamic_img_size" && of == TimmClass::beit);
}

// Whether timm's class has the argument and this value of it.
bool is_expressible(TimmClass of, const std::string& field, const Json& value) {
  if (is_harmless(of, field)) return true;
  if (value.is_null()) return false;  // null is the row's value when the file is read
  if (!timm_arguments(of).contains(field)) return false;
  if (field == "global_pool") return value != "token_avg" && (value != "map" || of != TimmClass::beit);
  if (field == "pos_embed") return value == "learn" || value == "none";
  if (field == "attn_pool_mlp_ratio") return value != 0;  // timm takes the blocks' ratio for 0
  return true;
}

// DINOv3's own files round the periods to bf16; timm has them in full.
bool has_usual_periods(const Config& config) {
  constexpr double kRounding = 1.0 / 256;
  const auto count = static_cast<double>(config.rope_periods.size());
  for (size_t i = 0; i < config.rope_periods.size(); ++i) {
    const double usual = std::pow(config.rope_temperature, static_cast<double>(i) / count);
    if (std::abs(config.rope_periods[i] - usual) > kRounding * usual) return false;
  }
  return true;
}

// Gives the MLP as timm's arguments do: as the row, if it is the row's, else by mlp_ratio if one gives its width.
void set_timm_mlp(Config& config, const Config& row, TimmClass of) {
  const int64_t hidden = mlp_hidden_of(config);
  const bool gated = has_swiglu(config);
  if (gated && config.global_pool != GlobalPool::map) config.act_layer = row.act_layer;  // SwiGLU has its own
  Config timm = config;
  if (gated == has_swiglu(row)) {
    timm.mlp_layer = row.mlp_layer;
    timm.swiglu_mlp = row.swiglu_mlp;
    timm.swiglu_align_to = row.swiglu_align_to;
    timm.mlp_ratio = row.mlp_ratio;
    timm.mlp_hidden = row.mlp_hidden;
  } else if (of == TimmClass::eva) {
    timm.mlp_layer = MlpLayer::mlp;
    timm.swiglu_mlp = gated;
    timm.swiglu_align_to = 0;
  } else {
    return;
  }
  const bool same_width = timm.embed_dim == row.embed_dim && mlp_hidden_of(timm) == hidden;  // timm rounds some ratios
  const bool same_kind = !config.mlp_hidden && timm.mlp_layer == config.mlp_layer &&
                         timm.swiglu_mlp == config.swiglu_mlp && timm.swiglu_align_to == config.swiglu_align_to;
  if (same_kind && !same_width) return;
  if (!same_width) {
    const int64_t width = timm.mlp_layer == MlpLayer::swiglu_packed ? 2 * hidden : hidden;
    timm.mlp_ratio = static_cast<double>(width) / static_cast<double>(timm.embed_dim);
    timm.mlp_hidden.reset();
  }
  if (mlp_hidden_of(timm) == hidden) config = timm;
}

// Whether the class token has a position and registers have none, as in DINOv2.  timm adds that position to the token.
bool has_only_class_position(const Config& config) {
  return config.pos_embed == PositionEmbedding::learned && config.class_token && !config.no_embed_class &&
         config.reg_tokens > 0 && config.no_embed_reg;
}

// The same model with the fields as a row has them, where they differ in form alone.
Config in_form_of(const Config& row, Config config, TimmClass of) {
  set_timm_mlp(config, row, of);
  if (config.patch_bias == !config.pre_norm) config.patch_bias.reset();
  if (config.head_dim && *config.head_dim * config.num_heads == config.embed_dim) config.head_dim.reset();
  const bool average = config.global_pool == GlobalPool::avg, after_pool = config.fc_norm.value_or(average);
  config.fc_norm = !config.final_norm || after_pool == row.fc_norm.value_or(average) ? row.fc_norm : after_pool;
  if (config.pos_embed == PositionEmbedding::none) config.no_embed_class = row.no_embed_class;
  if (has_only_class_position(config)) config.no_embed_class = row.no_embed_class;
  if (config.pos_embed == PositionEmbedding::none || config.reg_tokens == 0 || config.no_embed_class)
    config.no_embed_reg = row.no_embed_reg;
  return config;
}

// The arguments of timm for the fields that differ from a row's; none if timm cannot express them.
std::optional<TimmForm> form_of(const Config& config, const Architecture& row, TimmClass of) {
  if (!row.in_timm || timm_class_of(row.config) != of) return std::nullopt;
  const Config timm = in_form_of(row.config, config, of);
  TimmForm form{.architecture = &row};
  const Json changes = write_model_args(timm, row.config);
  for (const auto& [field, value] : changes.items()) {
    if (!is_expressible(of, field, value)) return std::nullopt;
    if (is_harmless(of, field)) {
      form.vitrail_args[field] = value;
      continue;
    }
    const std::string& name = timm_arguments(of).at(field);
    const bool absolute = name == "use_abs_pos_emb";
    form.model_args[name.empty() ? field : name] = absolute ? Json(value == "learn") : value;
  }
  // Where the size is that of timm's pretrained_cfg alone, timm would build the class's default, and resize positions.
  if (timm.img_size != Config().img_size) form.model_args["img_size"] = write_model_args(timm, Config()).at("img_size");
  form.adds_class_position = timm.no_embed_class && has_only_class_position(config);
  form.layer_scale_is_gamma = of != TimmClass::vision_transformer && timm.init_values && !timm.use_post_norm;
  form.separate_qkv = of == TimmClass::eva && row.config.scale_mlp;  // timm's EVA-02 base and large
  form.separate_gate =
      timm.mlp_layer == MlpLayer::swiglu || (timm.swiglu_mlp && (timm.scale_mlp || timm.swiglu_align_to > 0));
  return form;
}

}  // namespace

std::optional<TimmForm> timm_form(const Config& config, const std::string& own_name) {
  if (!has_usual_periods(config)) return std::nullopt;
  const TimmClass of = timm_class_of(config);
  std::optional<TimmForm> best;
  size_t min_cost = SIZE_MAX;
  for (const Architecture& row : architectures()) {
    std::optional<TimmForm> form = form_of(config, row, of);
    if (!form) continue;
    const size_t cost = row.name == own_name ? 0 : 1 + form->model_args.size() + form->vitrail_args.size();
    if (cost >= min_cost) continue;
    min_cost = cost;
    best = std::move(form);
  }
  return best;
}

namespace {

NamedTensors with_class_position_added(const NamedTensors& tensors) {
  const auto find = [&](const std::string& name) {
    return std::ranges::find_if(tensors, [&](const auto& item) { return item.first == name; })->second;
  };
  const Tensor token = find("cls_token"), positions = find("pos_embed");
  NamedTensors result = tensors;
  for (auto& [name, tensor] : result) {
    if (name == "cls_token")
      tensor = ops::add(token.to(DType::f32), positions.narrow(1, 0, 1).to(DType::f32)).to(token.dtype());
    if (name == "pos_embed") tensor = positions.narrow(1, 1, positions.size(1) - 1).contiguous();
  }
  return result;
}

}  // namespace

NamedTensors timm_tensors(const TimmForm& form, const NamedTensors& tensors) {
  NamedTensors result;
  for (const auto& [name, tensor] : form.adds_class_position ? with_class_position_added(tensors) : tensors) {
    // Equal parts of axis 0, whose names have a part instead of `word`.
    const auto split = [&, &name = name, &tensor = tensor](const std::string& word,
                                                           const std::vector<std::string>& parts) {
      const size_t at = name.find(word);
      if (!name.starts_with("blocks.") || at == name.npos) return false;
      const int64_t rows = tensor.size(0) / static_cast<int64_t>(parts.size());
      for (size_t i = 0; i < parts.size(); ++i) {
        const Tensor part = tensor.narrow(0, static_cast<int64_t>(i) * rows, rows).contiguous();
        result.emplace_back(std::string(name).replace(at, word.size(), parts[i]), part);
      }
      return true;
    };
    const bool renamed =
        (form.layer_scale_is_gamma && (split(".ls1.gamma", {".gamma_1"}) || split(".ls2.gamma", {".gamma_2"}))) ||
        (form.separate_qkv &&
         (split(".attn.qkv.", {".attn.q_proj.", ".attn.k_proj.", ".attn.v_proj."}) ||
          split(".attn.q_bias", {".attn.q_proj.bias"}) || split(".attn.v_bias", {".attn.v_proj.bias"}))) ||
        (form.separate_gate && split(".mlp.fc1.", {".mlp.fc1_g.", ".mlp.fc1_x."}));
    if (!renamed) result.emplace_back(name, tensor);
  }
  return result;
}

}  // namespace vitrail::models
