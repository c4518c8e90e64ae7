// SPDX-License-Identifier: Apache-2.0
// Hugging Face transformers' preprocessor_config.json.  Absent fields have the defaults of the processor's class.
#include <algorithm>
#include <array>
#include <string_view>

#include "vitrail/base/error.h"
#include "vitrail/base/file_lookup_internal.h"
#include "vitrail/base/read_file.h"
#include "vitrail/base/text.h"
#include "vitrail/models/config_formats_internal.h"

namespace vitrail::models {
namespace {

struct Statistics {
  std::array<double, 3> mean, std;
};
constexpr Statistics kImageNet{{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};
constexpr Statistics kStandard{{0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}};
constexpr Statistics kClip{{0.48145466, 0.4578275, 0.40821073}, {0.26862954, 0.26130258, 0.27577711}};

constexpr Statistics kNone{{0, 0, 0}, {1, 1, 1}};

constexpr int64_t kBilinear = 2, kBicubic = 3;  // values of Pillow's Image.Resampling

// The class attributes of a processor in transformers.
struct Processor {
  std::string_view name;  // without ImageProcessor, FeatureExtractor, Fast or Pil
  int64_t resample;
  int64_t size;
  bool shortest_edge;  // what an integer size means; otherwise it is both edges
  bool center_crop;
  Statistics statistics;
};
constexpr Processor kProcessors[] = {
    {"ViT", kBilinear, 224, false, false, kStandard},    {"DeiT", kBicubic, 256, false, true, kStandard},
    {"Beit", kBicubic, 224, false, false, kStandard},    {"Siglip", kBicubic, 224, false, false, kStandard},
    {"Blip", kBicubic, 384, false, false, kClip},        {"Bit", kBicubic, 224, true, true, kClip},
    {"CLIP", kBicubic, 224, true, true, kClip},          {"ChineseCLIP", kBicubic, 224, true, true, kClip},
    {"ConvNext", kBicubic, 384, true, false, kStandard}, {"DINOv3ViT", kBilinear, 224, false, false, kImageNet},
    {"Tipsv2", kBilinear, 448, false, false, kNone}};
constexpr int64_t kDefaultCrop = 224;

// The processors of transformers' AutoImageProcessor.  It has none for parts of models and for DINOv2 with registers,
// which have those of the whole model and of DINOv2.
struct ModelProcessor {
  std::string_view model_type, processor;
};
constexpr ModelProcessor kModelProcessors[] = {{"vit", "ViT"},
                                               {"vit_mae", "ViT"},
                                               {"vit_msn", "ViT"},
                                               {"ijepa", "ViT"},
                                               {"deit", "DeiT"},
                                               {"beit", "Beit"},
                                               {"data2vec-vision", "Beit"},
                                               {"dinov2", "Bit"},
                                               {"dinov2_with_registers", "Bit"},
                                               {"dinov3_vit", "DINOv3ViT"},
                                               {"clip", "CLIP"},
                                               {"clip_vision_model", "CLIP"},
                                               {"metaclip_2", "CLIP"},
                                               {"metaclip_2_vision_model", "CLIP"},
                                               {"aimv2", "CLIP"},
                                               {"aimv2_vision_model", "CLIP"},
                                               {"siglip", "Siglip"},
                                               {"siglip_vision_model", "Siglip"},
                                               {"tipsv2_vision_model", "Tipsv2"}};

const Processor* processor_of_model(std::string_view model_type) {
  for (const ModelProcessor& row : kModelProcessors) {
    if (row.model_type == model_type) return std::ranges::find(kProcessors, row.processor, &Processor::name);
  }
  return nullptr;
}

const Processor* named_processor(const JsonFields& file, const char* key) {
  const auto type = file.text(key);
  for (const Processor& row : kProcessors) {
    for (const char* ending : {"ImageProcessor", "ImageProcessorFast", "ImageProcessorPil", "FeatureExtractor"}) {
      if (*type == std::string(row.name) + ending) return &row;
    }
  }
  const auto name_of = [](const Processor& row) { return std::string(row.name) + "ImageProcessor"; };
  const std::string known = join(kProcessors, ", ", name_of);
  throw Error(file.path(key), "one of " + known + "; without the file, give --mean, --std and --interpolation",
              "\"" + type->substr(0, 80) + "\"");
}

// The processor that the file names, or else config.json; null if neither does.
const Processor* processor_of(const JsonFields& file, const JsonFields& model) {
  for (const char* key : {"image_processor_type", "feature_extractor_type"}) {
    if (file.has(key)) return named_processor(file, key);
  }
  if (model.has("image_processor_type")) return named_processor(model, "image_processor_type");
  return processor_of_model(model.text("model_type").value_or(""));
}

// Whether a step is done.  transformers takes null, unlike an absent field, for false.
bool does_step(const JsonFields& file, const char* step, bool preset) {
  const bool is_null = file.object().contains(step) && !file.has(step);
  return !is_null && file.boolean(step).value_or(preset);
}

// {"height": h, "width": w}, {"shortest_edge": n} with or without "longest_edge", or an integer (older files).
void read_size(const JsonFields& file, const char* key, bool shortest_edge, Preprocessing& to) {
  if (!file.at(key).is_object()) {
    to.resize_to = file.size(key);
    if (shortest_edge && integer_of(file.at(key))) {
      to.resize_shortest = (*to.resize_to)[0];
      to.resize_to.reset();
    }
    return;
  }
  const JsonFields size(file.at(key), file.path(key));
  if (size.has("height") && size.has("width")) {
    to.resize_to = {*size.integer("height"), *size.integer("width")};
  } else if (size.has("shortest_edge")) {
    to.resize_shortest = size.integer("shortest_edge");
    to.resize_longest = size.integer("longest_edge");
  } else {
    throw Error(size.where(), "height and width, or shortest_edge", size.object().dump());
  }
}

void read_resize(const JsonFields& file, const Processor* type, Preprocessing& to) {
  if (!does_step(file, "do_resize", true)) return;
  if (file.has("size")) {
    read_size(file, "size", type && type->shortest_edge, to);
  } else if (type && type->shortest_edge) {
    to.resize_shortest = type->size;
  } else if (type) {
    to.resize_to = {type->size, type->size};
  }
}

void read_crop(const JsonFields& file, const Processor* type, Preprocessing& to) {
  if (!does_step(file, "do_center_crop", type ? type->center_crop : file.has("crop_size"))) return;
  Preprocessing crop;
  if (file.has("crop_size")) {
    read_size(file, "crop_size", false, crop);
    to.center_crop = crop.resize_to;
  } else if (type) {
    to.center_crop = {kDefaultCrop, kDefaultCrop};
  }
}

// ConvNextImageProcessor: a small image is a crop of one that is larger by 1 / crop_pct; a large one is squashed.
void apply_crop_pct(const JsonFields& file, Preprocessing& to) {
  constexpr int64_t kSmallestSquashed = 384;
  if (!to.resize_shortest || *to.resize_shortest < 1) return;  // check_preprocessing() refuses sizes below 1
  const int64_t size = *to.resize_shortest;
  const std::array<int64_t, 2> square{size, size};
  to.resize_longest.reset();
  if (size >= kSmallestSquashed) {
    to.resize_shortest.reset();
    to.resize_to = square;
    return;
  }
  const double crop_pct = file.number("crop_pct").value_or(224.0 / 256.0);
  if (!(crop_pct >= 0.01 && crop_pct <= 1)) throw Error(file.path("crop_pct"), "0.01 to 1", str(crop_pct));
  to.resize_shortest = static_cast<int64_t>(static_cast<double>(size) / crop_pct);
  if (!to.center_crop) to.center_crop = square;
}

// None for a resize without a class: another filter than the model's gives slightly wrong results.
std::optional<std::string> filter_name(const JsonFields& file, const Processor* type, bool resizes) {
  static const char* const kPillow[] = {"nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"};
  if (!type && resizes && !file.has("resample")) return std::nullopt;
  const int64_t number = file.integer("resample").value_or(type ? type->resample : kBilinear);
  if (number < 0 || number > 5)
    throw Error(file.path("resample"), "a value of Pillow's Image.Resampling, 0 to 5", str(number));
  return kPillow[number];
}

// A list of numbers, or one number for all channels.
std::optional<std::vector<double>> statistic(const JsonFields& file, const char* key) {
  if (file.has(key) && file.at(key).is_number()) return std::vector<double>{*file.number(key)};
  return file.numbers(key);
}

void read_statistics(const JsonFields& file, const Processor* type, int64_t channels, Preprocessing& to) {
  if (!does_step(file, "do_normalize", true)) {
    to.mean = std::vector<double>(static_cast<size_t>(channels), 0.0);
    to.std = std::vector<double>(static_cast<size_t>(channels), 1.0);
    return;
  }
  to.mean = statistic(file, "image_mean");
  to.std = statistic(file, "image_std");
  if (!type) return;
  const auto& [mean, std] = type->statistics;
  if (!to.mean) to.mean = std::vector<double>(mean.begin(), mean.end());
  if (!to.std) to.std = std::vector<double>(std.begin(), std.end());
}

}  // namespace

PreprocessorFile preprocessor_file(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "processor_config.json", alone = folder / "preprocessor_config.json";
  if (is_present(file)) {
    const Json json = parse_json(read_regular_text_file(file), file.string());
    const auto nested = json.is_object() ? json.find("image_processor") : json.end();
    if (nested != json.end() && nested->is_object()) return {nested->dump(), file.string()};
  }
  return {is_present(alone) ? read_regular_text_file(alone) : "", alone.string()};
}

Preprocessing read_preprocessor(const Json& json, const JsonFields& model, const VisionTransformerConfig& vit,
                                const std::string& where) {
  const JsonFields file(json, where);
  const Processor* const type = processor_of(file, model);
  Preprocessing result;
  result.rule = ResizeRule::huggingface;
  result.input_size = vit.img_size;
  read_resize(file, type, result);
  result.interpolation = filter_name(file, type, result.resize_to || result.resize_shortest);
  read_crop(file, type, result);
  if (type && type->name == "ConvNext") apply_crop_pct(file, result);
  if (result.resize_to) result.input_size = result.resize_to;
  if (result.center_crop) result.input_size = result.center_crop;
  result.resize_floats = type && type->name == "DINOv3ViT";
  if (result.resize_floats && (result.center_crop || !result.resize_to)) {
    throw Error(file.path("do_center_crop"), "a resize to one size without a crop, as DINOv3's processor does",
                "another geometry");
  }
  const bool rescales = does_step(file, "do_rescale", true);
  result.rescale_factor = rescales ? file.number("rescale_factor").value_or(1.0 / 255.0) : 1.0;
  read_statistics(file, type, vit.in_chans, result);
  check_preprocessing(result, vit.in_chans, where);
  return result;
}

}  // namespace vitrail::models
