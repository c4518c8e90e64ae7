// SPDX-License-Identifier: Apache-2.0
// Hugging Face transformers' config.json (ViT, ViT-MAE, MSN, I-JEPA, DeiT, DINOv2, DINOv2 with registers).  Other
// families have files of their own.
#include <algorithm>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/models/config_formats_internal.h"
#include "vitrail/models/unsupported_families_internal.h"

namespace vitrail::models {
namespace {

int64_t integer_or(const JsonFields& file, const char* key, int64_t transformers_default) {
  return file.integer(key).value_or(transformers_default);
}

void read_common(const JsonFields& file, VisionTransformerConfig& vit) {
  if (const auto size = file.size("image_size")) vit.img_size = *size;
  if (const auto size = file.size("patch_size")) vit.patch_size = *size;
  vit.in_chans = integer_or(file, "num_channels", 3);
  vit.embed_dim = integer_or(file, "hidden_size", 768);
  vit.depth = integer_or(file, "num_hidden_layers", 12);
  vit.num_heads = integer_or(file, "num_attention_heads", 12);
  vit.qkv_bias = file.boolean("qkv_bias").value_or(true);
  vit.act_layer = read_hidden_act(file, "gelu");
  vit.attn_drop_rate = file.number("attention_probs_dropout_prob").value_or(0.0);
  vit.proj_drop_rate = file.number("hidden_dropout_prob").value_or(0.0);
  vit.pos_drop_rate = vit.proj_drop_rate;
  vit.pos_interp = {.antialias = false, .offset = 0};
}

void read_vit(const JsonFields& file, bool deit, VisionTransformerConfig& vit) {
  vit.norm_eps = file.number("layer_norm_eps").value_or(*file.text("model_type") == "vit_msn" ? 1e-6 : 1e-12);
  vit.mlp_hidden = integer_or(file, "intermediate_size", 3072);
  if (*file.text("model_type") == "ijepa") {  // pooled: the mean of the tokens after the last norm
    vit.class_token = false;
    vit.global_pool = GlobalPool::avg;
    vit.fc_norm = false;
  }
  if (!deit) return;
  // Only the model "WithTeacher" has a distillation head.  In others no head reads the distillation token, so it is a
  // register with a position embedding.
  if (architecture_ends_with(file, "WithTeacher")) {
    vit.dist_token = true;
  } else {
    vit.reg_tokens = 1;
  }
}

void read_dinov2(const JsonFields& file, bool registers, VisionTransformerConfig& vit) {
  vit.norm_eps = file.number("layer_norm_eps").value_or(1e-6);
  vit.mlp_ratio = file.number("mlp_ratio").value_or(4.0);
  if (file.boolean("use_swiglu_ffn").value_or(false)) vit.mlp_layer = MlpLayer::swiglu;
  vit.init_values = file.number("layerscale_value").value_or(1.0);
  vit.drop_path_rate = file.number("drop_path_rate").value_or(0.0);
  vit.dynamic_img_size = true;
  if (registers) {
    vit.reg_tokens = integer_or(file, "num_register_tokens", 4);
    vit.no_embed_reg = true;
    vit.pos_interp.antialias = true;
  }
}

}  // namespace

kernels::Activation read_hidden_act(const JsonFields& file, const char* by_default) {
  using kernels::Activation;
  const std::string name = file.text("hidden_act").value_or(by_default);
  if (name == "gelu") return Activation::gelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast") return Activation::gelu_tanh;
  if (name == "quick_gelu") return Activation::quick_gelu;
  if (name == "relu") return Activation::relu;
  if (name == "silu" || name == "swish") return Activation::silu;
  throw Error(file.path("hidden_act"), "gelu, gelu_new, gelu_pytorch_tanh, quick_gelu, relu or silu",
              "\"" + name + "\"");
}

bool architecture_ends_with(const JsonFields& file, const std::string& ending) {
  if (!file.has("architectures") || !file.at("architectures").is_array()) return false;
  for (const Json& item : file.at("architectures")) {
    if (item.is_string() && item.get<std::string>().ends_with(ending)) return true;
  }
  return false;
}

std::vector<std::string> read_labels(const JsonFields& file) {
  std::vector<std::string> labels;
  if (!file.has("id2label")) return labels;
  const JsonFields map(file.at("id2label"), file.path("id2label"));
  labels.resize(map.object().size());
  for (const auto& item : map.object().items()) {
    size_t index = labels.size();
    const bool number = !item.key().empty() && item.key().size() < 9 &&
                        std::all_of(item.key().begin(), item.key().end(), [](char c) { return c >= '0' && c <= '9'; });
    if (number) index = std::stoul(item.key());
    if (index >= labels.size() || !item.value().is_string()) {
      throw Error(map.where(), str("class indices 0 to ", labels.size() - 1, " with a name each"),
                  "\"" + item.key() + "\"");
    }
    labels[index] = item.value().get<std::string>();
  }
  return labels;
}

ModelConfig read_huggingface_config(const Json& json, const Json& preprocessor, const std::string& where) {
  const JsonFields file(json, where);
  if (is_clip(*file.text("model_type"))) return read_clip_config(json, preprocessor, where);
  if (is_beit(*file.text("model_type"))) return read_beit_config(json, preprocessor, where);
  if (is_aimv2(*file.text("model_type"))) return read_aimv2_config(json, preprocessor, where);
  if (is_siglip(*file.text("model_type"))) return read_siglip_config(json, preprocessor, where);
  if (is_dinov3(*file.text("model_type"))) return read_dinov3_config(json, preprocessor, where);
  ModelConfig config;
  config.architecture = *file.text("model_type");
  read_common(file, config.vit);
  const bool dinov2 = config.architecture.starts_with("dinov2");
  const std::string& type = config.architecture;
  if (type == "vit" || type == "vit_mae" || type == "vit_msn" || type == "ijepa" || type == "deit") {
    read_vit(file, config.architecture == "deit", config.vit);
  } else if (config.architecture == "dinov2" || config.architecture == "dinov2_with_registers") {
    read_dinov2(file, config.architecture != "dinov2", config.vit);
  } else {
    refuse_unsupported_family(type, file.path("model_type"));
    throw Error(file.path("model_type"),
                "vit, vit_mae, vit_msn, ijepa, deit, dinov2, dinov2_with_registers, dinov3_vit, clip, "
                "clip_vision_model, metaclip_2, siglip, siglip_vision_model, beit, data2vec-vision, aimv2 or "
                "aimv2_vision_model",
                "\"" + config.architecture + "\"");
  }
  const bool classifies = architecture_ends_with(file, "ForImageClassification") || config.vit.dist_token;
  config.vit.num_classes = 0;
  if (classifies) {
    config.labels = read_labels(file);
    config.vit.num_classes =
        config.labels.empty() ? file.integer("num_labels").value_or(2) : static_cast<int64_t>(config.labels.size());
    if (dinov2) config.vit.global_pool = GlobalPool::token_avg;
  }
  if (!preprocessor.is_null()) {
    config.preprocessing = read_preprocessor(preprocessor, config.vit, where + " (preprocessor_config.json)");
  }
  return config;
}

}  // namespace vitrail::models
