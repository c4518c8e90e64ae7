// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/semantic/config.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/base/text.h"
#include "vitrail/models/config_formats_internal.h"
#include "vitrail/models/dense/config_internal.h"
#include "vitrail/models/huggingface_config_internal.h"
#include "vitrail/models/model_config.h"
#include "vitrail/models/unsupported_families_internal.h"

namespace vitrail::models {
namespace {

constexpr const char* kOwnFields = "segmentation";

// Indices of blocks from the first; negative ones count from the end.
void check_layers(const std::string& where, SemanticConfig& config) {
  const int64_t depth = config.backbone.depth;
  for (int64_t& layer : config.layers) {
    if (layer < -depth || layer >= depth)
      throw Error(where, str("blocks from ", -depth, " to ", depth - 1), str(layer));
    if (layer < 0) layer += depth;
  }
  if (config.layers.empty()) throw Error(where, "at least one block", "none");
}

void check_labels(const std::string& where, const SemanticConfig& config) {
  constexpr int64_t kMaxClasses = 1 << 14;
  const int64_t classes = config.num_classes();
  if (classes < 1 || classes > kMaxClasses)
    throw Error(where, str("the names of 1 to ", kMaxClasses, " classes"), str(classes));
}

void check_window(const std::string& where, SemanticConfig& config) {
  if (!config.window) return;
  config.resize.covers = true;
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t size = config.window->size[axis], stride = config.window->stride[axis];
    if (size > config.resize.size[axis])
      throw Error(where + ": window: size", str("at most the input's ", config.resize.size[axis]), str(size));
    if (stride > size) throw Error(where + ": window: stride", str("at most the window's ", size), str(stride));
  }
}

void describe_window(Fields& fields, SlidingWindow& window) {
  fields.size({"size", "height and width of a window"}, window.size);
  fields.size({"stride", "from one window to the next, down and across"}, window.stride);
}

SemanticConfig read_own(const std::string& text, const JsonFields& file, const std::string& preprocessor,
                        const std::string& preprocessor_path) {
  const ModelConfig model = parse_model_config(text, preprocessor, file.where(), "", preprocessor_path);
  SemanticConfig config;
  config.architecture = model.architecture;
  config.backbone = model.vit;
  config.backbone_key_map.clear();  // that of the tensors' names
  config.backbone.num_classes = 0;
  config.backbone.global_pool = GlobalPool::token;
  config.backbone.fc_norm = false;
  config.backbone.dynamic_img_size = config.backbone.allow_remainder = true;
  config.preprocessing = model.preprocessing;
  const std::string where = file.path(kOwnFields);
  std::vector<Error> problems;
  JsonFieldReader reader(file.at(kOwnFields), where + ": ", problems);
  describe_segmentation(reader, config);
  reader.finish();
  if (!problems.empty()) throw problems.front();
  check_layers(where + ": layers", config);
  config.neck.dim = config.backbone.embed_dim;
  if (config.head == SemanticHead::dpt) read_dpt_neck(JsonFields(file.at(kOwnFields), where), config, config.neck);
  check_labels(where + ": labels", config);
  check_window(where, config);
  config.preprocessing.rule = ResizeRule::huggingface;  // the whole image, at the size of config.resize
  config.preprocessing.resize_to = config.preprocessing.input_size = config.resize.size;
  return config;
}

void read_semantic_dpt(const JsonFields& file, const std::string& preprocessor, const std::string& preprocessor_path,
                       SemanticConfig& config) {
  config.head = SemanticHead::dpt;
  config.batch_norm = true;
  require_defaults(file, {{"head_in_index", -1}});
  if (file.has("backbone_config"))
    throw Error(file.path("backbone_config"), "none: DPTForSemanticSegmentation has a ViT of its own", "one");
  read_dpt_backbone(file, config, config.neck);
  read_dpt_neck(file, config, config.neck);
  read_dpt_processor(preprocessor, preprocessor_path, file, config);
}

// Index k stands for the hidden state behind k − 1 blocks, unlike that of a backbone.
void read_upernet_layers(const JsonFields& file, SemanticConfig& config) {
  const char* const key = file.has("out_indices") ? "out_indices" : "segmentation_indices";
  const std::vector<int64_t> indices = file.integers(key).value_or(std::vector<int64_t>{3, 5, 7, 11});
  constexpr size_t kMaps = 4;
  if (indices.size() != kMaps) throw Error(file.path(key), str(kMaps, " hidden states"), str(indices.size()));
  for (const int64_t index : indices) {
    const int64_t last = config.backbone.depth;
    if (index < 2 || index > last) throw Error(file.path(key), str("hidden states from 2 to ", last), str(index));
    config.layers.push_back(index - 2);
  }
}

void read_upernet(const JsonFields& file, const std::string& preprocessor, const std::string& preprocessor_path,
                  SemanticConfig& config) {
  config.head = SemanticHead::upernet;
  read_dense_blocks(file.object(), file.where(), config);
  config.backbone.final_norm = config.final_norm = false;
  config.backbone_key_map = "huggingface_beit";
  config.backbone_name = config.architecture == "beit" ? "beit" : "data2vec_vision";
  read_upernet_layers(file, config);
  JsonFields::assign(config.pool_scales, file.integers("pool_scales"));
  constexpr int64_t kMaxScale = 64;
  for (const int64_t scale : config.pool_scales) {
    if (scale < 1 || scale > kMaxScale) throw Error(file.path("pool_scales"), str("1 to ", kMaxScale), str(scale));
  }
  const Json json = preprocessor.empty() ? Json::object() : parse_json(preprocessor, preprocessor_path);
  require_defaults(JsonFields(json, preprocessor_path), {{"do_center_crop", false}});
  config.preprocessing = read_preprocessor(json, file, config.backbone, preprocessor_path);
  config.resize.none = !config.preprocessing.resize_to;
  config.resize.size = config.preprocessing.resize_to.value_or(config.backbone.img_size);
  for (size_t axis = 0; axis < 2; ++axis) {  // the coarsest map has half of the patches
    if (config.resize.size[axis] < 2 * config.backbone.patch_size[axis])
      throw Error(preprocessor_path + ": size", "two patches or more a side", str(config.resize.size[axis]));
  }
}

SemanticConfig read_transformers(const JsonFields& file, const std::string& preprocessor,
                                 const std::string& preprocessor_path) {
  SemanticConfig config;
  const std::string type = config.architecture = file.text("model_type").value_or("");
  if (type == "dpt") {
    read_semantic_dpt(file, preprocessor, preprocessor_path, config);
  } else if (type == "beit" || type == "data2vec-vision") {
    read_upernet(file, preprocessor, preprocessor_path, config);
  } else {
    refuse_unsupported_family(type, file.path("model_type"));
    throw Error(file.path("model_type"), "dpt, beit or data2vec-vision, or vitrail's own \"segmentation\"",
                "\"" + type.substr(0, 80) + "\"");
  }
  config.labels = class_names_of(file);
  check_labels(file.path("id2label"), config);
  return config;
}

}  // namespace

std::vector<WindowPlace> windows_of(const SemanticConfig& config, int64_t height, int64_t width) {
  if (!config.window) return {{0, 0, height, width, {height, width}}};
  const SlidingWindow& window = *config.window;
  const std::array map{height, width};
  std::array<std::vector<int64_t>, 2> starts;
  std::array<int64_t, 2> size{}, input{};
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t stride = window.stride[axis];
    size[axis] = std::min(window.size[axis], map[axis]);
    input[axis] = round_up(size[axis], config.backbone.patch_size[axis]);
    const int64_t last = map[axis] - size[axis];
    for (int64_t start = 0; start < last; start += stride) starts[axis].push_back(start);
    starts[axis].push_back(last);  // it ends at the edge
  }
  std::vector<WindowPlace> places;
  for (const int64_t top : starts[0]) {
    for (const int64_t left : starts[1]) places.push_back({top, left, size[0], size[1], input});
  }
  return places;
}

void describe_segmentation(Fields& fields, SemanticConfig& config) {
  fields.choice({"head", "the head"}, config.head, {{"linear", SemanticHead::linear}, {"dpt", SemanticHead::dpt}});
  fields.integers({"layers", "blocks whose outputs the head reads, negative from the end"}, config.layers);
  fields.boolean({"final_norm", "whether the backbone's final norm is applied to them"}, config.final_norm);
  fields.boolean({"batch_norm", "a batch normalisation: of a linear head's input, of dpt's first convolution"},
                 config.batch_norm);
  if (config.head == SemanticHead::dpt || fields.reads()) {
    fields.integers({"neck_hidden_sizes", "dpt: channels of each map"}, config.neck.hidden_dims);
    fields.numbers({"reassemble_factors", "dpt: how each map is resampled"}, config.neck.factors);
    fields.integer({"fusion_hidden_size", "dpt: channels of the fused map"}, config.neck.fusion_dim);
    fields.choice({"readout_type", "dpt: what patches receive of the class token"}, config.neck.readout,
                  {{"ignore", DptReadout::ignore}, {"add", DptReadout::add}, {"project", DptReadout::project}});
  }
  fields.texts({"labels", "names of the classes"}, config.labels);
  fields.size({"size", "height and width of the input"}, config.resize.size);
  fields.boolean({"keep_aspect_ratio", "both sides have the scale of the one that changes less"},
                 config.resize.keep_aspect_ratio);
  fields.integer({"multiple", "both sides are multiples of it"}, config.resize.multiple, 1, 1024);
  if (config.window || fields.reads())
    fields.object({"window", "windows of the image, whose logits are averaged"}, config.window, describe_window);
}

SemanticConfig read_semantic_config(const std::string& text, const std::string& path, const std::string& preprocessor,
                                    const std::string& preprocessor_path) {
  const Json json = parse_json(text, path);
  const JsonFields file(json, path);
  return file.has(kOwnFields) ? read_own(text, file, preprocessor, preprocessor_path)
                              : read_transformers(file, preprocessor, preprocessor_path);
}

std::string write_semantic_config(const SemanticConfig& config) {
  if (config.head == SemanticHead::upernet) throw Error("config.json", "a linear or a dpt head", "upernet");
  ModelConfig model{.architecture = config.architecture, .vit = config.backbone, .preprocessing = config.preprocessing};
  model.preprocessing.rule = ResizeRule::timm;
  Json json = Json::parse(write_model_config(model));
  json[kOwnFields] = json_of_fields(describe_segmentation, config);
  return json.dump(2) + "\n";
}

}  // namespace vitrail::models
