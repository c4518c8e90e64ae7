// SPDX-License-Identifier: Apache-2.0
#pragma once
// How an image becomes a model's input, as a configuration file states it.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace vitrail::models {

// timm: resize so that size / crop_pct fits (crop_mode), then crop.  huggingface: the steps of a
// preprocessor_config.json.
enum class ResizeRule : uint8_t { timm, huggingface };

// Unset fields were not in the file: nothing is guessed (see missing()).
struct Preprocessing {
  std::optional<std::array<int64_t, 2>> input_size;  // height, width that the model gets
  std::optional<std::string> interpolation;          // "bicubic", "bilinear", "lanczos", "box", "hamming", "nearest"
  std::optional<std::vector<double>> mean, std;      // per channel, of values in [0, 1]

  ResizeRule rule = ResizeRule::timm;
  // timm
  std::optional<double> crop_pct;
  std::string crop_mode = "center";  // or "squash", "border"
  // Hugging Face; the unset steps are left out
  std::optional<std::array<int64_t, 2>> resize_to;  // exactly height × width
  std::optional<int64_t> resize_shortest;           // the shorter side
  std::optional<std::array<int64_t, 2>> center_crop;
  double rescale_factor = 1.0 / 255.0;

  // The settings that must be given and are not, by the names of the options that supply them ("--mean"); empty:
  // complete.
  std::vector<std::string> missing() const;
};

// "imagenet", "inception", "cifar10", "mnist": fills mean, std, and where unset interpolation and crop_pct.
// Throws Error for another name.
void apply_preset(const std::string& preset, Preprocessing& preprocessing);

}  // namespace vitrail::models
