// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/shell/common.h"
#include "apps/vitrail/shell/usage_errors.h"

#include "vitrail/base/error.h"
#include "vitrail/models/bundled.h"

namespace vitrail::app {
namespace {

constexpr const char* kPreprocessing = "Preprocessing (default: the model's)";

const CLI::Validator kImageSize(
    [](const std::string& text) {
      return kPositiveInteger(text).empty() ? "" : "expected N or HEIGHT,WIDTH in pixels, got '" + text + "'";
    },
    "");

}  // namespace

void ModelOptions::add_to(CLI::App& command, bool with_m) {
  if (with_m) {
    command.add_option("-m,--model", model,
                       "Model: folder with config.json and weights, a weights file (.safetensors, .pth, .npz), or "
                       "organisation/name[@revision] on the Hugging Face hub");
  }
  add_source_to(command);
  add_preprocessing_to(command);
}

void ModelOptions::add_source_to(CLI::App& command) {
  command.add_option("--config", config, "config.json for a weights file without one, or a registered architecture");
  command.add_option("--key-map", key_map, "Key map of the weights: JSON file or built-in family (default: detected)");
  command.add_option("--image-size", image_size, "Input size: N or HEIGHT,WIDTH")
      ->delimiter(',')
      ->allow_extra_args(false)  // the next argument is an input image
      ->group(kPreprocessing)
      ->check(kImageSize);
}

void ModelOptions::add_preprocessing_to(CLI::App& command) {
  command
      .add_option("--preset", preset,
                  "imagenet, inception, cifar10 or mnist: sets mean and std, and fills in unset values")
      ->group(kPreprocessing);
  command.add_option("--mean", mean, "Mean per channel, for pixels in [0, 1]: 0.485,0.456,0.406")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group(kPreprocessing);
  command.add_option("--std", std, "Standard deviation per channel")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group(kPreprocessing);
  command
      .add_option("--interpolation", interpolation,
                  "Interpolation: bicubic, bilinear, lanczos, box, hamming or nearest")
      ->check(CLI::IsMember({"bicubic", "bilinear", "lanczos", "box", "hamming", "nearest"}))
      ->group(kPreprocessing);
  command.add_option("--crop-pct", crop_pct, "Fraction of the resized image that the crop keeps")
      ->group(kPreprocessing);
  command.add_option("--crop-mode", crop_mode, "Crop mode: center, squash or border")
      ->check(CLI::IsMember({"center", "squash", "border"}))
      ->group(kPreprocessing);
}

void ModelOptions::add_merging_to(CLI::App& command) {
  command.add_option("--tome", tome, "Tokens merged per block (Token Merging): faster, less accurate")
      ->check(kNonNegative);
}

models::VisionTransformerConfig ModelOptions::config_of(const models::Architecture& row) const {
  models::VisionTransformerConfig config = row.config;
  config.img_size = given_image_size().value_or(config.img_size);
  return config;
}

std::optional<std::array<int64_t, 2>> ModelOptions::given_image_size() const {
  if (image_size.size() > 2)
    throw CLI::ValidationError("--image-size", str("expected N or HEIGHT,WIDTH, got ", image_size.size(), " numbers"));
  if (image_size.empty()) return std::nullopt;
  return std::array{image_size.front(), image_size.back()};
}

std::string ModelOptions::path() const {
  if (!model.empty()) return model;
  if (models::find_bundled(models::kDefaultModel)) return models::kDefaultModel;
  throw Error(
      "no model: pass -m MODEL, a folder with config.json and model.safetensors, or organisation/name on the hub");
}

models::LoadOptions ModelOptions::load_options() const {
  models::LoadOptions load{.image_size = given_image_size()};
  if (!config.empty()) load.config = config;
  if (!key_map.empty()) load.key_map = key_map;
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
