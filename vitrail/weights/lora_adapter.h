// SPDX-License-Identifier: Apache-2.0
#pragma once
// LoRA adapters as peft (https://github.com/huggingface/peft) saves them: a folder with adapter_config.json and
// adapter_model.safetensors, or adapter_model.bin.
#include <filesystem>
#include <map>
#include <string>

#include "vitrail/tensor/tensor.h"

namespace vitrail::weights {

struct LoraAdapter {
  // What is added to a weight [out, ...]: scale · B A, with A [rank, in] and B [out, rank], in f32.
  struct Part {
    Tensor a, b;
    double scale = 1;
  };
  std::map<std::string, Part> parts;      // by the weight's name in the adapted model
  std::map<std::string, Tensor> tensors;  // parameters instead of the model's, such as a new head
  std::string path;                       // for messages
};

// Reads a folder, or the adapter_model file in one.  Throws Error for a file that is missing or malformed, and for what
// is no LoRA: another method of peft, weights of DoRA, transposed layers.
LoraAdapter read_lora_adapter(const std::filesystem::path& path);

// Writes a folder for an adapter whose parts have one rank and scale, as write_hub_folder does.  base_model: the name
// of the model that is adapted.  config_json: the configuration of the adapted model, for config.json, unless empty.
void write_lora_adapter(const std::filesystem::path& folder, const LoraAdapter& adapter, const std::string& base_model,
                        const std::string& config_json = "");

// weight + scale · B A, as f32.  Throws Error if the shapes do not fit.
Tensor add_lora_part(const Tensor& weight, const LoraAdapter::Part& part);

}  // namespace vitrail::weights
