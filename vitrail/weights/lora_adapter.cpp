// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/lora_adapter.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "vitrail/base/atomic_file.h"
#include "vitrail/base/error.h"
#include "vitrail/base/file_lookup_internal.h"
#include "vitrail/base/json_checks_internal.h"
#include "vitrail/base/parallel.h"
#include "vitrail/base/read_file.h"
#include "vitrail/weights/checkpoint.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::weights {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

constexpr const char *kConfigFile = "adapter_config.json", *kWeightsFile = "adapter_model.safetensors";
constexpr const char* kPrefix = "base_model.model.";
constexpr size_t kMaxConfigBytes = 4 << 20;
constexpr int kMaxConfigDepth = 64;

// The fields of adapter_config.json that the values of an adapter depend on.
struct AdapterConfig {
  double alpha = 8;
  bool rank_stabilized = false;                        // divides by the square root of the rank
  std::vector<std::pair<std::string, double>> alphas;  // alpha of the layers whose names end so
};

AdapterConfig read_config(const fs::path& file) {
  const std::string text = read_regular_text_file(file, kMaxConfigBytes);
  if (json_depth(text) > kMaxConfigDepth) throw Error(file.string(), "a LoraConfig", "JSON that is nested deeper");
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) throw Error(file.string(), "a JSON object", "something else");
  const std::string type = json.value("peft_type", "");
  if (type != "LORA") throw Error(file.string(), "\"peft_type\": \"LORA\"", "\"" + type + "\"");
  for (const char* unsupported : {"use_dora", "fan_in_fan_out"}) {
    if (json.contains(unsupported) && json[unsupported] == true)
      throw Error(file.string(), str("\"", unsupported, "\": false"), "true");
  }
  AdapterConfig config;
  config.alpha = json.value("lora_alpha", config.alpha);
  config.rank_stabilized = json.contains("use_rslora") && json["use_rslora"] == true;
  if (json.contains("alpha_pattern") && json["alpha_pattern"].is_object()) {
    for (const auto& [name, alpha] : json["alpha_pattern"].items()) {
      if (name.find_first_of("^$*+?()[]{}|\\") != name.npos)
        throw Error(file.string(), "names of layers in \"alpha_pattern\"", "a regular expression, " + name);
      config.alphas.emplace_back(name, alpha.get<double>());
    }
  }
  return config;
}

AdapterConfig read_checked_config(const fs::path& file) {
  try {
    return read_config(file);
  } catch (const Json::exception& error) {
    throw Error(file.string(), "the fields of a LoraConfig", error.what());
  }
}

double alpha_of(const AdapterConfig& config, const std::string& layer) {
  for (const auto& [name, alpha] : config.alphas) {
    if (layer == name || layer.ends_with("." + name)) return alpha;
  }
  return config.alpha;
}

double scale_of(const AdapterConfig& config, const std::string& layer, int64_t rank) {
  const auto r = static_cast<double>(rank);
  return alpha_of(config, layer) / (config.rank_stabilized ? std::sqrt(r) : r);
}

void remove(std::string& name, const std::string& part) {
  if (const size_t at = name.find(part); at != name.npos) name.erase(at, part.size());
}

// The name in the adapted model, without the layers that peft wraps it in.
std::string name_in_model(std::string name) {
  if (name.starts_with(kPrefix)) name = name.substr(std::string_view(kPrefix).size());
  for (const char* wrapper : {".modules_to_save.default", ".modules_to_save", ".base_layer"}) remove(name, wrapper);
  return name;
}

// [d0, d1, ...] → [d0, d1 · …]
Tensor matrix(const Tensor& tensor) {
  if (tensor.rank() < 2) throw Error("a matrix", "two axes or more", tensor.shape().to_string());
  return tensor.to(DType::f32)
      .contiguous()
      .view({tensor.size(0), tensor.numel() / std::max<int64_t>(1, tensor.size(0))});
}

struct Factors {
  Tensor a, b;
};

// "X.lora_A.weight" and "X.lora_A.NAME.weight" → X and 'A'; nothing for other names.
std::optional<std::pair<std::string, char>> factor_of(const std::string& key) {
  for (const char letter : {'A', 'B'}) {
    const std::string part = str(".lora_", letter, ".");
    const size_t at = key.rfind(part);
    if (at == key.npos) continue;
    const std::string end = key.substr(at + part.size());  // "weight", or peft's name of the adapter before it
    if (end == "weight" || end.ends_with(".weight")) return std::pair(key.substr(0, at), letter);
  }
  return std::nullopt;
}

LoraAdapter::Part part_of(const std::string& layer, const Factors& factors, const AdapterConfig& config,
                          const std::string& where) {
  if (!factors.a.defined() || !factors.b.defined())
    throw Error(where, "lora_A and lora_B of " + layer, "only one of them");
  const Tensor a = matrix(factors.a), b = matrix(factors.b);
  if (a.size(0) != b.size(1) || a.size(0) == 0)
    throw Error(where, "matrices of one rank for " + layer, str(a.shape(), " and ", b.shape()));
  return {a, b, scale_of(config, layer, a.size(0))};
}

fs::path weights_in(const fs::path& folder) {
  for (const char* name : {kWeightsFile, "adapter_model.bin"}) {
    if (is_present(folder / name)) return folder / name;
  }
  throw Error(folder.string(), str("a LoRA adapter: ", kConfigFile, " and ", kWeightsFile), "no such files");
}

}  // namespace

LoraAdapter read_lora_adapter(const fs::path& path) {
  const fs::path folder = is_folder(path) ? path : path.parent_path();
  const fs::path file = is_folder(path) ? weights_in(folder) : path;
  const AdapterConfig config = read_checked_config(folder / kConfigFile);
  const Checkpoint checkpoint = Checkpoint::open(file);
  LoraAdapter adapter{.parts = {}, .tensors = {}, .path = file.string()};
  std::map<std::string, Factors> layers;
  for (const std::string& key : checkpoint.names()) {
    if (const auto factor = factor_of(key)) {
      Factors& factors = layers[name_in_model(factor->first)];
      (factor->second == 'A' ? factors.a : factors.b) = checkpoint.tensor(key);
    } else if (key.find("lora_") != key.npos) {
      throw Error(adapter.path, "lora_A and lora_B of linear layers and convolutions", key);
    } else if (key.find("original_module") == key.npos) {
      adapter.tensors[name_in_model(key)] = checkpoint.tensor(key);
    }
  }
  if (layers.empty()) throw Error(adapter.path, "tensors named …lora_A.weight and …lora_B.weight", "none");
  for (const auto& [layer, factors] : layers)
    adapter.parts[layer + ".weight"] = part_of(layer, factors, config, adapter.path);
  return adapter;
}

namespace {

std::string layer_of(const std::string& parameter) { return parameter.substr(0, parameter.rfind('.')); }

std::string config_text(const LoraAdapter& adapter, const std::string& base_model) {
  const LoraAdapter::Part& first = adapter.parts.begin()->second;
  const int64_t rank = first.a.size(0);
  std::set<std::string> layers, replaced;
  for (const auto& [weight, part] : adapter.parts) layers.insert(layer_of(weight));
  for (const auto& [name, tensor] : adapter.tensors) replaced.insert(layer_of(name));
  Json json{{"peft_type", "LORA"},
            {"base_model_name_or_path", base_model},
            {"r", rank},
            {"lora_alpha", first.scale * static_cast<double>(rank)},
            {"lora_dropout", 0.0},
            {"bias", "none"},
            {"fan_in_fan_out", false},
            {"inference_mode", true},
            {"target_modules", layers},
            {"modules_to_save", nullptr}};
  if (!replaced.empty()) json["modules_to_save"] = replaced;
  return json.dump(2) + "\n";
}

}  // namespace

void write_lora_adapter(const fs::path& folder, const LoraAdapter& adapter, const std::string& base_model,
                        const std::string& config_json) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw Error(str(folder.string(), ": cannot be created: ", error.message()));
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const auto& [weight, part] : adapter.parts) {
    tensors.emplace_back(kPrefix + layer_of(weight) + ".lora_A.weight", part.a);
    tensors.emplace_back(kPrefix + layer_of(weight) + ".lora_B.weight", part.b);
  }
  for (const auto& [name, tensor] : adapter.tensors) tensors.emplace_back(kPrefix + name, tensor);
  AtomicFile weights(folder / kWeightsFile), config(folder / kConfigFile);
  write_safetensors(weights, tensors, {{"format", "pt"}}, folder / kWeightsFile);
  config.write(config_text(adapter, base_model));
  if (config_json.empty()) return AtomicFile::commit_together({&weights, &config});
  AtomicFile model(folder / "config.json");
  model.write(config_json);
  AtomicFile::commit_together({&weights, &config, &model});
}

Tensor add_lora_part(const Tensor& weight, const LoraAdapter::Part& part) {
  const int64_t out = part.b.size(0), in = part.a.size(1), rank = part.a.size(0);
  if (weight.size(0) != out || weight.numel() != out * in)
    throw Error("the adapter", str("a part for ", weight.shape()),
                str("one of ", part.b.shape(), " and ", part.a.shape()));
  const Tensor sum = weight.to(DType::f32).clone();
  const float *const a = part.a.data<float>(), *const b = part.b.data<float>();
  float* const values = sum.data<float>();
  parallel_for(0, out, 16, [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      for (int64_t r = 0; r < rank; ++r) {
        const auto factor = static_cast<float>(part.scale * static_cast<double>(b[row * rank + r]));
        for (int64_t i = 0; i < in; ++i) values[row * in + i] += factor * a[r * in + i];
      }
    }
  });
  return sum;
}

}  // namespace vitrail::weights
