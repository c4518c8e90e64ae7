// SPDX-License-Identifier: Apache-2.0
#pragma once
// The preprocessing of images, as a model's configuration files describe it.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace vitrail::models {

// The longest side of an image, above that of any published model.
inline constexpr int64_t kMaxPixels = 1 << 16;

// timm: resize to size / crop_pct by crop_mode, then crop.  huggingface: the steps of preprocessor_config.json.
enum class ResizeRule : uint8_t { timm, huggingface };

// An unset field was not in the file.  No defaults are assumed; see missing().
struct Preprocessing {
  std::optional<std::array<int64_t, 2>> input_size = {};  // height and width of the model's input
  std::optional<std::string> interpolation = {};  // "bicubic", "bilinear", "lanczos", "box", "hamming", "nearest"
  std::optional<std::vector<double>> mean = {}, std = {};  // per channel, of values in [0, 1]

  ResizeRule rule = ResizeRule::timm;
  // For rule timm.
  std::optional<double> crop_pct = {};
  std::string crop_mode = "center";        // "center", "squash" or "border"
  std::optional<int64_t> fill_color = {};  // border: each channel of the padding, 0 to 255; unset: the mean
  // For rule huggingface; unset steps are omitted.
  std::optional<std::array<int64_t, 2>> resize_to = {};  // height, width
  std::optional<int64_t> resize_shortest = {};           // size of the shorter edge
  std::optional<int64_t> resize_longest = {};            // with resize_shortest: upper limit of the longer edge
  std::optional<std::array<int64_t, 2>> center_crop = {};
  double rescale_factor = 1.0 / 255.0;  // another one: mean and std are of values in [0, 255 · factor]
  bool resize_floats = false;  // resizes without rounding to bytes (DINOv3's processor); needs resize_to, and no crop

  // The required settings that are unset, by the command-line options that supply them ("--mean").
  std::vector<std::string> missing() const;
};

// Settings that replace a model's own; unset ones leave them.
struct PreprocessingOverrides {
  std::string preset = {};  // as apply_preset(), after the others
  std::optional<std::vector<double>> mean = {}, std = {};
  std::optional<std::string> interpolation = {}, crop_mode = {};
  std::optional<double> crop_pct = {};
  bool operator==(const PreprocessingOverrides&) const = default;
};

// Throws Error for an invalid setting, naming the option that sets it ("--mean"), and for crop_pct and crop_mode on a
// model of rule huggingface, whose steps have neither.  A mean or std is of values in [0, 1] whatever the model's
// rescale_factor is; those of the model that remain are converted (use_unit_range()).  model_size: the size of the
// images that the model was trained on, for a preset on a model whose files name none.
void apply_overrides(const PreprocessingOverrides& overrides, int64_t channels,
                     const std::array<int64_t, 2>& model_size, Preprocessing& preprocessing);

// Presets "imagenet", "inception", "cifar10" and "mnist": sets mean and std, and interpolation and, for rule timm,
// crop_pct if unset.
// Throws Error for another name.
void apply_preset(const std::string& preset, Preprocessing& preprocessing);

// Checks the settings that are set: sizes from 1 to 65,536, crop_pct from 0.01 to 1, fill_color from 0 to 255, and for
// mean and std one number or one per channel, each mean from 0 to the brightest pixel after rescaling (1), each std
// above 0 and at most that.
// Throws Error naming the field, "where: mean", or with an empty `where` the option, "--mean".
void check_preprocessing(const Preprocessing& preprocessing, int64_t channels, const std::string& where);

// The same function with mean and std of values in [0, 1] and a rescale_factor of 1/255.  Changes nothing if the factor
// is 1/255, also a rounded one.
void use_unit_range(Preprocessing& preprocessing);

// Another input size {height, width}.  A resize before a crop is scaled by the same factor.
void set_input_size(const std::array<int64_t, 2>& size, Preprocessing& preprocessing);

}  // namespace vitrail::models
