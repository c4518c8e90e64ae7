// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/preprocessing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"

namespace vitrail::models {
namespace {

struct Preset {
  const char* name;
  std::vector<double> mean, std;
  const char* interpolation;
  double crop_pct;
};

// Mean and standard deviation of the datasets as in their reference training code.  crop_pct is timm's default for
// ImageNet, and 1 for small images.
const std::array<Preset, 4>& presets() {
  static const std::array<Preset, 4> table{{
      {"imagenet", {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}, "bicubic", 0.875},
      {"inception", {0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}, "bicubic", 0.9},
      {"cifar10", {0.4914, 0.4822, 0.4465}, {0.2470, 0.2435, 0.2616}, "bicubic", 1.0},
      {"mnist", {0.1307}, {0.3081}, "bilinear", 1.0},
  }};
  return table;
}

constexpr double kMinCrop = 0.01;  // a hundred times larger than the crop in each direction

// The name of a setting in errors: a field of a file, or an option.
std::string label(const std::string& where, std::string field) {
  if (!where.empty()) return where + ": " + field;
  std::replace(field.begin(), field.end(), '_', '-');
  return "--" + field;
}

std::string list_text(const std::vector<double>& values, double factor = 1) {
  return join(values, ",", [&](double value) { return value * factor; });
}

// Mean or std.  brightest: the value of a white pixel.
void check_statistics(const std::vector<double>& values, bool is_std, int64_t channels, double brightest,
                      const std::string& where) {
  // Hub configurations of greyscale models often have the values of RGB.
  if (values.size() != 1 && values.size() != static_cast<size_t>(channels) && !(channels == 1 && values.size() == 3)) {
    throw Error(where, channels == 1 ? "1 number" : str("1 or ", channels, " numbers, one per channel"),
                str(values.size(), values.empty() ? "" : ": " + list_text(values)));
  }
  const auto valid = [&](double value) {  // false for NaN
    return (is_std ? value > 0 : value >= 0) && value <= brightest;
  };
  if (std::ranges::all_of(values, valid)) return;
  const bool bytes = brightest == 1 && std::ranges::all_of(values, [](double v) { return v >= 0 && v <= 255; });
  throw Error(
      where, str("numbers ", is_std ? "above" : "from", " 0 ", is_std ? "and up to " : "to ", brightest),
      list_text(values) + (bytes && *std::ranges::max_element(values) > 1
                               ? ", which is for pixels from 0 to 255: divide by 255: " + list_text(values, 1.0 / 255)
                               : ""));
}

// The value of a white pixel after rescaling; 1 also for a rounded factor of 1/255.
double brightest_pixel(const Preprocessing& from) {
  if (from.rule != ResizeRule::huggingface) return 1;
  const double value = from.rescale_factor * 255;
  return std::abs(value - 1) < 1e-6 ? 1 : value;
}

// "do_normalize": false is read as mean 0 and std 1, whatever the range of pixels.
bool normalizes(const Preprocessing& from) {
  const auto all = [](const std::vector<double>& values, double value) {
    return std::ranges::all_of(values, [value](double v) { return v == value; });
  };
  return !(from.mean && from.std && all(*from.mean, 0) && all(*from.std, 1));
}

void check_side(int64_t side, const std::string& where) {
  if (side < 1 || side > kMaxPixels) throw Error(where, str("sizes from 1 to ", kMaxPixels), str(side));
}

void check_crop(double fraction, const std::string& where) {
  if (fraction >= kMinCrop && fraction <= 1) return;
  throw Error(
      where, str("a fraction from ", kMinCrop, " to 1"),
      str(fraction, fraction >= 10 && fraction <= 100 ? str(" (", fraction, " % is ", fraction / 100, ")") : ""));
}

// A processor's steps have no crop_pct and no crop_mode: the options would have no effect.
void refuse_timms_crop(const PreprocessingOverrides& overrides) {
  if (!overrides.crop_pct && !overrides.crop_mode) return;
  throw Error(
      overrides.crop_pct ? "--crop-pct" : "--crop-mode", "a model that is resized and cropped as in timm",
      "one whose preprocessor_config.json has its own steps (give --image-size, or edit its size and crop_size)");
}

}  // namespace

void check_preprocessing(const Preprocessing& from, int64_t channels, const std::string& where) {
  const double brightest = brightest_pixel(from);
  if (!(brightest > 0 && brightest <= 255)) {
    throw Error(label(where, "rescale_factor"), "a number above 0 and up to 1", str(from.rescale_factor));
  }
  const bool is_processor = from.rule == ResizeRule::huggingface && !where.empty();  // the fields of transformers
  if (normalizes(from)) {
    if (from.mean)
      check_statistics(*from.mean, false, channels, brightest, label(where, is_processor ? "image_mean" : "mean"));
    if (from.std)
      check_statistics(*from.std, true, channels, brightest, label(where, is_processor ? "image_std" : "std"));
  }
  if (from.crop_pct) check_crop(*from.crop_pct, label(where, "crop_pct"));
  for (const auto& [size, field] :
       {std::pair(&from.center_crop, "crop_size"), {&from.resize_to, "size"}, {&from.input_size, "image_size"}}) {
    for (const int64_t side : size->value_or(std::array<int64_t, 2>{1, 1}))
      check_side(side, label(where, is_processor ? field : "image_size"));
  }
  check_side(from.resize_shortest.value_or(1), label(where, "size: shortest_edge"));
  check_side(from.resize_longest.value_or(1), label(where, "size: longest_edge"));
  if (const int64_t fill = from.fill_color.value_or(0); fill < 0 || fill > 255) {
    throw Error(label(where, "fill_color"), "a value of a pixel, 0 to 255", str(fill));
  }
}

void use_unit_range(Preprocessing& to) {
  const double brightest = brightest_pixel(to);
  if (brightest == 1 || !(brightest > 0)) return;
  for (auto* values : {&to.mean, &to.std}) {
    if (!*values) continue;
    for (double& value : **values) value /= brightest;
  }
  to.rescale_factor = 1.0 / 255.0;
}

void set_input_size(const std::array<int64_t, 2>& size, Preprocessing& to) {
  const auto scaled = [](int64_t length, int64_t from, int64_t by) {
    return std::llround(static_cast<double>(length) * static_cast<double>(by) / static_cast<double>(from));
  };
  const std::array<int64_t, 2> before = to.center_crop.value_or(to.input_size.value_or(size));
  if (to.resize_to) {
    to.resize_to = to.center_crop ? std::array<int64_t, 2>{scaled((*to.resize_to)[0], before[0], size[0]),
                                                           scaled((*to.resize_to)[1], before[1], size[1])}
                                  : size;
  }
  for (auto* edge : {&to.resize_shortest, &to.resize_longest}) {
    // The longer edges determine the factor, so that the resized image covers the crop.
    if (*edge) *edge = scaled(**edge, std::max(before[0], before[1]), std::max(size[0], size[1]));
  }
  if (to.center_crop) to.center_crop = size;
  to.input_size = size;
}

std::vector<std::string> Preprocessing::missing() const {
  std::vector<std::string> names;
  if (!mean) names.push_back("--mean");
  if (!std) names.push_back("--std");
  if (!interpolation) names.push_back("--interpolation");
  if (rule == ResizeRule::timm && !crop_pct) names.push_back("--crop-pct");
  if (!input_size) names.push_back("--image-size");
  return names;
}

void apply_preset(const std::string& preset, Preprocessing& preprocessing) {
  for (const Preset& row : presets()) {
    if (preset != row.name) continue;
    preprocessing.mean = row.mean;
    preprocessing.std = row.std;
    if (!preprocessing.interpolation) preprocessing.interpolation = row.interpolation;
    const bool crops = preprocessing.rule == ResizeRule::timm;
    if (crops && !preprocessing.crop_pct) preprocessing.crop_pct = row.crop_pct;
    return;
  }
  throw Error("--preset", "imagenet, inception, cifar10 or mnist", "'" + preset + "'");
}

void apply_overrides(const PreprocessingOverrides& from, int64_t channels, const std::array<int64_t, 2>& model_size,
                     Preprocessing& to) {
  if (to.rule == ResizeRule::huggingface) refuse_timms_crop(from);
  if (from.mean || from.std || !from.preset.empty()) use_unit_range(to);
  if (from.mean) to.mean = from.mean;
  if (from.std) to.std = from.std;
  if (from.interpolation) to.interpolation = from.interpolation;
  if (from.crop_mode) to.crop_mode = *from.crop_mode;
  if (from.crop_pct) to.crop_pct = from.crop_pct;
  if (!from.preset.empty()) apply_preset(from.preset, to);
  check_preprocessing(to, channels, "");
  if (!to.input_size && !from.preset.empty()) to.input_size = model_size;
}

}  // namespace vitrail::models
