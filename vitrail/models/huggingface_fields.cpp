// SPDX-License-Identifier: Apache-2.0
// The fields that many configurations of Hugging Face transformers have.
#include <algorithm>
#include <set>

#include "vitrail/base/error.h"
#include "vitrail/models/huggingface_config_internal.h"

namespace vitrail::models {
namespace {

std::vector<std::string> read_labels(const JsonFields& file) {
  std::vector<std::string> labels;
  if (!file.has("id2label")) return labels;
  const JsonFields map(file.at("id2label"), file.path("id2label"));
  labels.resize(map.object().size());
  std::set<size_t> named;
  for (const auto& item : map.object().items()) {
    size_t index = labels.size();
    const bool number = !item.key().empty() && item.key().size() < 9 &&
                        std::all_of(item.key().begin(), item.key().end(), [](char c) { return c >= '0' && c <= '9'; });
    if (number) index = std::stoul(item.key());
    if (index >= labels.size() || !item.value().is_string() || !named.insert(index).second) {
      throw Error(map.where(), str("class indices 0 to ", labels.size() - 1, " with a name each"),
                  "\"" + item.key() + "\"");
    }
    labels[index] = item.value().get<std::string>();
  }
  return labels;
}

}  // namespace

void read_encoder(const JsonFields& file, const EncoderDefaults& defaults, VisionTransformerConfig& vit) {
  const int64_t patch = defaults.patch_size;
  vit.img_size = file.size("image_size").value_or(std::array<int64_t, 2>{224, 224});
  vit.patch_size = file.size("patch_size").value_or(std::array<int64_t, 2>{patch, patch});
  vit.in_chans = file.integer("num_channels").value_or(3);
  vit.embed_dim = file.integer("hidden_size").value_or(defaults.hidden_size);
  vit.depth = file.integer("num_hidden_layers").value_or(defaults.num_hidden_layers);
  vit.num_heads = file.integer("num_attention_heads").value_or(defaults.num_attention_heads);
  if (defaults.intermediate_size > 0)
    vit.mlp_hidden = file.integer("intermediate_size").value_or(defaults.intermediate_size);
  vit.norm_eps = file.number("layer_norm_eps").value_or(defaults.norm_eps);
  if (defaults.hidden_act) vit.act_layer = read_hidden_act(file, defaults.hidden_act);
  // The newer classes have attention_dropout, and no dropout of projections.
  for (const char* name : {"attention_dropout", "attention_probs_dropout_prob"})
    JsonFields::assign(vit.attn_drop_rate, file.number(name));
  vit.proj_drop_rate = vit.pos_drop_rate = file.number("hidden_dropout_prob").value_or(0.0);
  vit.pos_interp = {.antialias = false, .offset = 0};
  vit.num_classes = 0;
}

JsonFields vision_fields(const JsonFields& file) {
  return file.has("vision_config") ? file.nested("vision_config") : file;
}

void read_classes(const JsonFields& file, ModelConfig& config) {
  config.labels = read_labels(file);
  config.vit.num_classes =
      config.labels.empty() ? file.integer("num_labels").value_or(2) : static_cast<int64_t>(config.labels.size());
}

std::vector<std::string> class_names_of(const JsonFields& file) {
  constexpr int64_t kMaxClasses = 1 << 16;
  ModelConfig classes;
  read_classes(file, classes);
  std::vector<std::string> names = classes.labels;
  const int64_t count = classes.vit.num_classes;
  if (count < 1 || count > kMaxClasses) throw Error(file.path("num_labels"), str("1 to ", kMaxClasses), str(count));
  for (int64_t i = std::ssize(names); i < count; ++i) names.push_back(str("LABEL_", i));
  return names;
}

bool architecture_ends_with(const JsonFields& file, const std::string& ending) {
  if (!file.has("architectures") || !file.at("architectures").is_array()) return false;
  return std::ranges::any_of(file.at("architectures"), [&](const Json& item) {
    return item.is_string() && item.get<std::string>().ends_with(ending);
  });
}

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

}  // namespace vitrail::models
