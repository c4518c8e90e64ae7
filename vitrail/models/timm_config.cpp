// SPDX-License-Identifier: Apache-2.0
// Reads timm's config.json and the "vit" form.
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/models/config_formats_internal.h"
#include "vitrail/models/model_args_internal.h"
#include "vitrail/models/registry.h"
#include "vitrail/models/unsupported_families_internal.h"

namespace vitrail::models {
namespace {

struct InputSize {
  int64_t channels = 0;
  std::array<int64_t, 2> size{};  // height, width
};

std::optional<InputSize> input_size_of(const JsonFields& fields) {
  const auto size = fields.numbers("input_size");
  if (!size) return std::nullopt;
  if (size->size() != 3)
    throw Error(fields.path("input_size"), "[channels, height, width]", str(size->size(), " numbers"));
  for (const double side : *size) {
    if (!(side >= 0 && side <= 1e9))
      throw Error(fields.path("input_size"), str("sizes from 1 to ", kMaxPixels), str(side));
  }
  const auto extent = [&](size_t axis) { return static_cast<int64_t>((*size)[axis]); };
  return InputSize{extent(0), {extent(1), extent(2)}};
}

// The arguments that pretrained_cfg determines (timm/models/_builder.py, _update_default_model_kwargs).  Old files have
// its fields outside it.
void read_pretrained_cfg(const JsonFields& file, VisionTransformerConfig& vit) {
  const JsonFields from = file.has("pretrained_cfg") ? file.nested("pretrained_cfg") : file;
  if (const int64_t classes = from.integer("num_classes").value_or(-1); classes >= 0) vit.num_classes = classes;
  const auto input = input_size_of(from);
  if (!input) return;
  vit.in_chans = input->channels;
  const bool any_size = file.nested("model_args").boolean("dynamic_img_size").value_or(false);
  if (from.boolean("fixed_input_size").value_or(false) && !any_size) vit.img_size = input->size;
}

// Reads preprocessing settings; overwrites those of earlier calls.
void read_preprocessing(const JsonFields& fields, Preprocessing& to) {
  if (const auto input = input_size_of(fields)) to.input_size = input->size;
  if (const auto value = fields.text("interpolation")) to.interpolation = value;
  if (const auto value = fields.number("crop_pct")) to.crop_pct = value;
  JsonFields::assign(to.crop_mode, fields.text("crop_mode"));
  if (const auto value = fields.integer("fill_color")) to.fill_color = value;
  if (const auto value = fields.numbers("mean")) to.mean = value;
  if (const auto value = fields.numbers("std")) to.std = value;
}

// label_descriptions maps a label name to its description.
std::vector<std::string> label_descriptions(const JsonFields& fields, const std::vector<std::string>& labels) {
  std::vector<std::string> descriptions;
  if (!fields.has("label_descriptions") || labels.empty()) return descriptions;
  const JsonFields texts(fields.at("label_descriptions"), fields.path("label_descriptions"));
  for (const std::string& label : labels) descriptions.push_back(texts.text(label.c_str()).value_or(label));
  return descriptions;
}

// "tag" of the file or of pretrained_cfg, or what follows the name ("deit_tiny_patch16_224.fb_in1k").
std::string tag_of(const JsonFields& file, const std::string& architecture) {
  if (const auto tag = file.text("tag")) return *tag;
  if (const auto tag = file.nested("pretrained_cfg").text("tag")) return *tag;
  const size_t dot = architecture.find('.');
  return dot == std::string::npos ? "" : architecture.substr(dot + 1);
}

}  // namespace

const VisionTransformerConfig& registered_config(const std::string& architecture, const std::string& where) {
  if (const Architecture* row = find_architecture(architecture)) return row->config;
  refuse_unsupported_family(architecture, where);
  const std::string names = join(similar_architectures(architecture));
  throw Error(where, "\"vit\" or a registered name (like " + names + ")", "\"" + architecture + "\"");
}

ModelConfig read_timm_config(const Json& json, const std::string& where, const std::string& family_args) {
  const JsonFields file(json, where);
  ModelConfig config;
  config.architecture = *file.text("architecture");
  if (config.architecture != "vit") config.vit = registered_config(config.architecture, file.path("architecture"));
  if (!family_args.empty()) {
    const Json args = parse_json(family_args, "model_args of the key map");
    read_model_args(JsonFields(args, "model_args of the key map"), config.vit);
  }
  read_pretrained_cfg(file, config.vit);
  JsonFields::assign(config.vit.num_classes, file.integer("num_classes"));
  if (file.has("global_pool")) {
    const Json pool{{"global_pool", file.at("global_pool")}};
    read_model_args(JsonFields(pool, where), config.vit);
  }
  // vitrail_args are the fields for which timm has no argument; they are separate so that timm can open the file.
  read_model_args(file.nested("vitrail_args"), config.vit);
  read_model_args(file.nested("model_args"), config.vit);
  read_preprocessing(file, config.preprocessing);
  read_preprocessing(file.nested("pretrained_cfg"), config.preprocessing);
  config.tag = tag_of(file, config.architecture);
  config.int8 = int8_config(file);
  config.labels = texts(file, "label_names");
  config.descriptions = label_descriptions(file, config.labels);
  return config;
}

}  // namespace vitrail::models
