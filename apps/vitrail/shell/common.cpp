// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/shell/common.h"
#include "apps/vitrail/shell/field_options.h"

#include "vitrail/base/error.h"
#include "vitrail/models/bundled.h"

namespace vitrail::app {
namespace {

constexpr const char* kPreprocessing = "Preprocessing (default: the model's)";

void add_preprocessing_options(CLI::App& command, const std::function<void(Fields&)>& describe) {
  add_field_options(command, describe, {}, [](CLI::Option& option) { option.group(kPreprocessing); });
}

}  // namespace

void ModelOptions::add_name_to(CLI::App& command) {
  command.add_option("-m,--model", model,
                     "Model: folder with config.json and weights, a weights file (.safetensors, .pth, .npz), or "
                     "organisation/name[@revision] on the Hugging Face hub");
}

void ModelOptions::add_to(CLI::App& command, bool with_m) {
  if (with_m) add_name_to(command);
  add_source_to(command);
  add_preprocessing_to(command);
}

void ModelOptions::add_source_to(CLI::App& command) {
  command.add_option("--config", config, "config.json for a weights file without one, or a registered architecture");
  command.add_option("--key-map", key_map, "Key map of the weights: JSON file or built-in family (default: detected)");
  command.add_option("--adapter", adapter, "LoRA adapter of the model: a folder with adapter_config.json, as of peft");
  add_preprocessing_options(command, [this](Fields& f) {
    f.size({"image_size", "Input size: N or HEIGHT,WIDTH"}, image_size);
  });
}

void ModelOptions::add_preprocessing_to(CLI::App& command) {
  add_preprocessing_options(command, [this](Fields& f) {
    f.text({"preset", "imagenet, inception, cifar10 or mnist: sets mean and std, and fills in unset values"}, preset);
    f.numbers({"mean", "Mean per channel, for pixels in [0, 1]: 0.485,0.456,0.406"}, mean);
    f.numbers({"std", "Standard deviation per channel"}, std);
    f.choice({"interpolation", "Interpolation: bicubic, bilinear, lanczos, box, hamming or nearest"}, interpolation,
             {"bicubic", "bilinear", "lanczos", "box", "hamming", "nearest"});
    f.number({"crop_pct", "Fraction of the resized image that the crop keeps"}, crop_pct);
    f.choice({"crop_mode", "Crop mode: center, squash or border"}, crop_mode, {"center", "squash", "border"});
  });
}

void ModelOptions::add_merging_to(CLI::App& command) {
  add_field_options(
      command,
      [this](Fields& f) {
        f.integer({"tome", "Tokens merged per block (Token Merging): faster, less accurate"}, tome, 0);
      },
      {}, hide_default);
}

models::VisionTransformerConfig ModelOptions::config_of(const models::Architecture& row) const {
  models::VisionTransformerConfig config = row.config;
  config.img_size = image_size.value_or(config.img_size);
  return config;
}

std::string ModelOptions::path() const {
  if (!model.empty()) return model;
  if (models::find_bundled(models::kDefaultModel)) return models::kDefaultModel;
  throw Error(
      "no model: pass -m MODEL, a folder with config.json and model.safetensors, or organisation/name on the hub");
}

models::LoadOptions ModelOptions::load_options() const {
  models::LoadOptions load{.image_size = image_size};
  if (!config.empty()) load.config = config;
  if (!key_map.empty()) load.key_map = key_map;
  if (!adapter.empty()) load.adapter = adapter;
  load.preprocessing.preset = preset;
  if (!mean.empty()) load.preprocessing.mean = mean;
  if (!std.empty()) load.preprocessing.std = std;
  if (!interpolation.empty()) load.preprocessing.interpolation = interpolation;
  if (!crop_mode.empty()) load.preprocessing.crop_mode = crop_mode;
  load.preprocessing.crop_pct = crop_pct;
  return load;
}

models::ModelConfig ModelOptions::read_config(const std::string& from) const {
  const models::LoadOptions load = load_options();
  models::ModelConfig result = models::read_config(from, load.image_size);
  models::apply_overrides(load.preprocessing, result.vit.in_chans, result.vit.img_size, result.preprocessing);
  return result;
}

void accept_dash(CLI::Option& option) {
  option.transform([](const std::string& value) { return value == "-" ? std::string("/dev/stdin") : value; });
}

vitrail::ModelOptions session_options_of(const ModelOptions& options, const GlobalOptions& global) {
  vitrail::ModelOptions model{
      .threads = global.threads, .load = options.load_options(), .merged_per_block = options.tome};
  if (!global.precision.empty()) model.precision = kernels::precision_from_name(global.precision);
  return model;
}

Model load_model(const models::ModelFiles& files, const ModelOptions& options, const GlobalOptions& global,
                 const std::string& labels) {
  vitrail::ModelOptions model = session_options_of(options, global);
  model.labels = labels;
  return Model(files, model);
}

Model load_model(const ModelOptions& options, const GlobalOptions& global, const std::string& labels) {
  return load_model(options.path(), options, global, labels);
}

}  // namespace vitrail::app
