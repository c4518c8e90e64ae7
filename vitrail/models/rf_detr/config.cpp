// SPDX-License-Identifier: Apache-2.0
// transformers' config.json of RF-DETR and LW-DETR.  Absent fields have the defaults of its configuration classes.
#include "vitrail/models/rf_detr/config.h"

#include <algorithm>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/models/config_formats_internal.h"
#include "vitrail/models/dense/config_internal.h"
#include "vitrail/models/huggingface_config_internal.h"
#include "vitrail/models/model_config.h"
#include "vitrail/models/unsupported_families_internal.h"

namespace vitrail::models {
namespace {

constexpr const char* kDetectionFields = "detection";
constexpr int64_t kMaxWindows = 64;
constexpr int64_t kMaxSide = 4096;
constexpr int64_t kMaxParts = 256;  // blocks, layers, points
constexpr int64_t kMaxQueries = 1 << 16;

int64_t limited(const JsonFields& file, const char* key, int64_t preset, int64_t max) {
  const int64_t value = file.integer(key).value_or(preset);
  if (value < 1 || value > max) throw Error(file.path(key), str("1 to ", max), str(value));
  return value;
}

kernels::Activation read_act(const JsonFields& file, const char* key, const char* preset) {
  const std::string name = file.text(key).value_or(preset);
  if (name == "silu") return kernels::Activation::silu;
  if (name == "relu") return kernels::Activation::relu;
  if (name == "gelu") return kernels::Activation::gelu;
  throw Error(file.path(key), "silu, relu or gelu", "\"" + name.substr(0, 80) + "\"");
}

void require_type(const JsonFields& file, const char* expected) {
  const std::string type = file.text("model_type").value_or("");
  if (type != expected) throw Error(file.path("model_type"), expected, "\"" + type.substr(0, 80) + "\"");
}

void read_maps(const JsonFields& file, RfDetrBackboneConfig& config) {
  config.file_depth = config.vit.depth;
  config.maps = feature_depths(file, config.file_depth);
  const bool ascending = std::ranges::adjacent_find(config.maps, std::greater_equal{}) == config.maps.end();
  if (config.maps.empty() || !ascending || config.maps.front() < 1 || config.maps.back() > config.file_depth) {
    throw Error(file.path("out_indices"), str("numbers of blocks in ascending order, 1 to ", config.file_depth),
                join(config.maps));
  }
  config.vit.depth = config.maps.back();
}

void set_windowed(const std::vector<int64_t>& blocks, RfDetrBackboneConfig& config) {
  for (int64_t i = 0; i < config.vit.depth; ++i)
    config.windowed.push_back(std::ranges::find(blocks, i) != blocks.end());
}

// A side of a square.
int64_t square_side(const JsonFields& file, const char* key, int64_t preset) {
  const std::array<int64_t, 2> size = file.size(key).value_or(std::array{preset, preset});
  if (size[0] != size[1] || size[0] < 1 || size[0] > kMaxSide)
    throw Error(file.path(key), str("a square of at most ", kMaxSide, " pixels a side"), str(size[0], "×", size[1]));
  return size[0];
}

// An lw_detr_vit of transformers: a plain ViT without a class token, whose attention has no bias of k.
void read_lw_detr_backbone(const Json& json, const std::string& where, RfDetrBackboneConfig& config) {
  const JsonFields file(json, where);
  require_type(file, "lw_detr_vit");
  require_defaults(file, {{"use_absolute_position_embeddings", true}});
  VisionTransformerConfig& vit = config.vit;
  vit = {.num_classes = 0,
         .global_pool = GlobalPool::none,
         .init_values = 0.1,
         .class_token = false,
         .pos_interp = {.antialias = false}};
  vit.final_norm = config.final_norm = false;
  vit.dynamic_img_size = vit.allow_remainder = true;
  vit.embed_dim = positive_dim(file, "hidden_size", 768);
  vit.depth = limited(file, "num_hidden_layers", 12, kMaxParts);
  vit.num_heads = positive_dim(file, "num_attention_heads", 12);
  if (vit.embed_dim % vit.num_heads != 0)
    throw Error(file.path("num_attention_heads"), str("a divisor of hidden_size ", vit.embed_dim), str(vit.num_heads));
  vit.mlp_ratio = file.number("mlp_ratio").value_or(4);
  vit.qkv_bias = file.boolean("qkv_bias").value_or(true);
  if (vit.qkv_bias) vit.attn_type = AttentionType::eva;
  vit.act_layer = read_act(file, "hidden_act", "gelu");
  vit.norm_eps = file.number("layer_norm_eps").value_or(1e-6);
  vit.in_chans = limited(file, "num_channels", 3, 4);
  const int64_t patch = square_side(file, "patch_size", 16), side = square_side(file, "pretrain_image_size", 224);
  if (patch > side) throw Error(file.path("patch_size"), "at most pretrain_image_size", str(patch));
  vit.patch_size = {patch, patch};
  vit.img_size = {side, side};
  const int64_t windows = limited(file, "num_windows", 16, kMaxWindows * kMaxWindows);
  while (config.num_windows * config.num_windows > windows) --config.num_windows;
  while (config.num_windows * config.num_windows < windows) ++config.num_windows;
  if (config.num_windows * config.num_windows != windows)
    throw Error(file.path("num_windows"), "the square of a number", str(windows));
  read_maps(file, config);
  set_windowed(file.integers("window_block_indices").value_or(std::vector<int64_t>{}), config);
}

// An rf_detr_dinov2 of transformers, which is DINOv2 but for its windows and the antialiasing of its positions.
void read_rf_detr_backbone(const Json& json, const std::string& where, RfDetrBackboneConfig& config) {
  const JsonFields file(json, where);
  require_type(file, "rf_detr_dinov2");
  Json dinov2 = json;
  dinov2["model_type"] = "dinov2";
  DenseConfig dense;
  read_dense_blocks(dinov2, where, dense);
  config.vit = dense.backbone;
  config.vit.pos_interp = {.antialias = true};
  if (config.vit.img_size[0] != config.vit.img_size[1])
    throw Error(file.path("image_size"), "a square", str(config.vit.img_size[0], "×", config.vit.img_size[1]));
  if (config.vit.patch_size[0] != config.vit.patch_size[1])
    throw Error(file.path("patch_size"), "a square", str(config.vit.patch_size[0], "×", config.vit.patch_size[1]));
  require_defaults(file, {{"reshape_hidden_states", true}});
  config.final_norm = file.boolean("apply_layernorm").value_or(true);
  config.num_windows = limited(file, "num_windows", 4, kMaxWindows);
  read_maps(file, config);
  if (const auto windowed = file.integers("window_block_indexes")) {
    set_windowed(*windowed, config);
  } else {
    config.windowed = windowed_blocks(config.vit.depth, config.maps);
  }
}

void read_decoder(const JsonFields& file, RfDetrConfig& config) {
  RfDetrDecoderConfig& decoder = config.decoder;
  decoder.depth = limited(file, "decoder_layers", 3, kMaxParts);
  decoder.points = limited(file, "decoder_n_points", 4, kMaxParts);
  decoder.self_heads = positive_dim(file, "decoder_self_attention_heads", 8);
  decoder.cross_heads = positive_dim(file, "decoder_cross_attention_heads", 16);
  decoder.mlp_hidden = positive_dim(file, "decoder_ffn_dim", 2048);
  decoder.act = read_act(file, "decoder_activation_function", "relu");
  config.num_queries = limited(file, "num_queries", 300, kMaxQueries);
  for (const int64_t parts : {decoder.self_heads, decoder.cross_heads, int64_t{4}}) {
    if (config.dim % parts != 0)
      throw Error(file.path("d_model"), "a width that 4 and the numbers of heads divide", str(config.dim));
  }
}

Json standard_backbone(bool is_lw_detr) {
  if (is_lw_detr) {
    return {{"model_type", "lw_detr_vit"},
            {"hidden_size", 192},
            {"num_hidden_layers", 10},
            {"window_block_indices", {0, 1, 3, 6, 7, 9}},
            {"out_indices", {2, 4, 5, 9}}};
  }
  return {{"model_type", "rf_detr_dinov2"},
          {"hidden_size", 384},
          {"num_attention_heads", 6},
          {"image_size", 518},
          {"out_features", {"stage2", "stage5", "stage8", "stage11"}}};
}

void read_lw_detr_projector(const JsonFields& file, RfDetrProjectorConfig& config) {
  config.batch_norm = true;
  config.norm_eps = file.number("batch_norm_eps").value_or(1e-5);
  config.scales = file.numbers("projector_scale_factors").value_or(std::vector<double>{});
  const auto is_scale = [](double scale) { return scale == 0.5 || scale == 1 || scale == 2; };
  if (config.scales.empty() || config.scales.size() > 4 || !std::ranges::all_of(config.scales, is_scale))
    throw Error(file.path("projector_scale_factors"), "1 to 4 of 0.5, 1 and 2",
                file.has("projector_scale_factors") ? file.at("projector_scale_factors").dump().substr(0, 80) : "none");
}

void read_masks(const JsonFields& file, RfDetrConfig& config) {
  RfDetrMaskConfig& masks = config.masks.emplace();
  masks.downsampling = limited(file, "mask_downsample_ratio", 4, kMaxSide);
  masks.blocks = config.decoder.depth;
  masks.mlp_hidden = positive_dim(file, "intermediate_size", 1024);
  masks.act = read_act(file, "segmentation_head_activation_function", "gelu");
}

// The class attributes of RfDetrImageProcessor, or of LW-DETR's DeformableDetrImageProcessor, where the file has no
// value.  The former has no Pillow version: floats are resized.
void read_rf_detr_processor(const std::string& text, const std::string& where, RfDetrConfig& config) {
  Json json = text.empty() ? Json::object() : parse_json(text, where);
  const JsonFields file(json, where);
  const std::string name = config.architecture == "lw_detr" ? "DeformableDetr" : "RfDetr";
  if (const auto type = file.text("image_processor_type"); type && !type->starts_with(name))
    throw Error(file.path("image_processor_type"), name + "ImageProcessor", "\"" + type->substr(0, 80) + "\"");
  if (file.has("pad_size")) throw Error(file.path("pad_size"), "null", file.at("pad_size").dump().substr(0, 80));
  json.erase("image_processor_type");
  const Json defaults{{"size", {{"shortest_edge", 800}, {"longest_edge", 1333}}},
                      {"resample", 2},
                      {"image_mean", {0.485, 0.456, 0.406}},
                      {"image_std", {0.229, 0.224, 0.225}}};
  for (const auto& [key, value] : defaults.items()) {
    if (!file.has(key.c_str())) json[key] = value;
  }
  const Json nothing = Json::object();
  const VisionTransformerConfig& vit = config.backbone.vit;
  Preprocessing& to = config.preprocessing;
  to = read_preprocessor(json, JsonFields(nothing, where), vit, where);
  const int64_t multiple = vit.patch_size[0] * config.backbone.num_windows;
  const auto size = to.resize_to;
  if (!size || (*size)[0] != (*size)[1] || (*size)[0] % multiple != 0 || (*size)[0] > kMaxSide) {
    throw Error(file.path("size"),
                str("equal height and width, a multiple of ", multiple, " (patches · windows) up to ", kMaxSide),
                json["size"].dump().substr(0, 80));
  }
  if (to.interpolation != "bilinear")
    throw Error(file.path("resample"), "2 (bilinear)", json["resample"].dump().substr(0, 80));
  to.resize_floats = config.architecture == "rf_detr";
  int64_t cells = 0;
  for (const double scale : config.projector.scales) {
    const auto side = static_cast<int64_t>(std::ceil(static_cast<double>((*size)[0] / vit.patch_size[0]) * scale));
    cells += side * side;
  }
  if (config.num_queries > cells) {
    throw Error(file.path("size"), str("at least as many cells of the decoder's maps as queries, ", config.num_queries),
                str(cells));
  }
}

void check_own_detection(const std::string& where, const RfDetrConfig& config) {
  const std::vector<int64_t>& maps = config.backbone.maps;
  const int64_t depth = config.backbone.vit.depth;
  const bool ascending = std::ranges::adjacent_find(maps, std::greater_equal{}) == maps.end();
  if (maps.empty() || !ascending || maps.front() < 1 || maps.back() > depth)
    throw Error(where + ": maps", str("numbers of blocks in ascending order, 1 to ", depth), join(maps));
  const int64_t multiple = config.backbone.vit.patch_size[0] * config.backbone.num_windows;
  if (config.side() < multiple || config.side() % multiple != 0 || config.side() > kMaxSide)
    throw Error(where + ": size", str("a multiple of ", multiple, " (patch · windows) up to ", kMaxSide),
                str(config.side()));
  const int64_t patches = config.side() / config.backbone.vit.patch_size[0];
  if (config.num_queries > patches * patches)
    throw Error(where + ": queries", str("at most the input's ", patches * patches, " patches"),
                str(config.num_queries));
  for (const int64_t parts : {config.decoder.self_heads, config.decoder.cross_heads, int64_t{4}}) {
    if (config.dim % parts != 0)
      throw Error(where + ": width", "one that 4 and the numbers of heads divide", str(config.dim));
  }
  if (config.labels.empty()) throw Error(where + ": labels", "the names of the classes", "none");
}

RfDetrConfig read_own_detection(const std::string& text, const JsonFields& file, const std::string& preprocessor,
                                const std::string& preprocessor_path) {
  const ModelConfig model = parse_model_config(text, preprocessor, file.where(), "", preprocessor_path);
  RfDetrConfig config;
  config.architecture = model.architecture;
  config.backbone.vit = model.vit;
  config.backbone.vit.dynamic_img_size = true;
  config.preprocessing = model.preprocessing;
  config.preprocessing.resize_to = std::array<int64_t, 2>{};
  const std::string where = file.path(kDetectionFields);
  std::vector<Error> problems;
  JsonFieldReader reader(file.at(kDetectionFields), where + ": ", problems);
  describe_detection(reader, config);
  reader.finish();
  if (!problems.empty()) throw problems.front();
  check_own_detection(where, config);
  config.backbone.file_depth = config.backbone.vit.depth;
  config.max_objects = config.num_queries;
  config.backbone.windowed = windowed_blocks(config.backbone.vit.depth, config.backbone.maps);
  config.preprocessing.rule = ResizeRule::huggingface;
  config.preprocessing.input_size = config.preprocessing.resize_to;
  return config;
}

}  // namespace

std::vector<bool> windowed_blocks(int64_t depth, const std::vector<int64_t>& maps) {
  std::vector<bool> windowed(static_cast<size_t>(depth), true);
  for (const int64_t map : maps) {
    if (map < depth) windowed[static_cast<size_t>(map)] = false;
  }
  return windowed;
}

void describe_detection(Fields& fields, RfDetrConfig& config) {
  constexpr int64_t kMaxWidth = 1 << 16;
  fields.integers({"maps", "the number of blocks before each map of the backbone"}, config.backbone.maps);
  fields.boolean({"final_norm", "whether maps are normalised"}, config.backbone.final_norm);
  fields.integer({"windows", "windows of the backbone along each side"}, config.backbone.num_windows, 1, kMaxWindows);
  fields.integer({"width", "channels of the map and of the queries"}, config.dim, 4, kMaxWidth);
  fields.integer({"projector_hidden", "channels of each of the joined maps"}, config.projector.hidden, 1, kMaxWidth);
  fields.integer({"projector_blocks", "pairs of 3×3 convolutions"}, config.projector.blocks, 1, kMaxParts);
  fields.integer({"decoder_layers", "layers of the decoder"}, config.decoder.depth, 1, kMaxParts);
  fields.integer({"self_heads", "heads of self-attention"}, config.decoder.self_heads, 1, kMaxWidth);
  fields.integer({"cross_heads", "heads of deformable attention"}, config.decoder.cross_heads, 1, kMaxWidth);
  fields.integer({"points", "points that a head of a query reads"}, config.decoder.points, 1, kMaxParts);
  fields.integer({"mlp_hidden", "width of the decoder's MLPs"}, config.decoder.mlp_hidden, 1, kMaxWidth);
  fields.integer({"queries", "objects that are found at most"}, config.num_queries, 1, kMaxQueries);
  fields.texts({"labels", "names of the classes"}, config.labels);
  fields.size({"size", "height and width of the input"}, *config.preprocessing.resize_to);
}

std::string write_rf_detr_config(const RfDetrConfig& config) {
  ModelConfig model{
      .architecture = config.architecture, .vit = config.backbone.vit, .preprocessing = config.preprocessing};
  model.preprocessing.rule = ResizeRule::timm;
  Json json = Json::parse(write_model_config(model));
  json[kDetectionFields] = json_of_fields(describe_detection, config);
  return json.dump(2) + "\n";
}

RfDetrConfig read_rf_detr_config(const std::string& text, const std::string& path, const std::string& preprocessor,
                                 const std::string& preprocessor_path, bool masks) {
  const Json json = parse_json(text, path);
  const JsonFields file(json, path);
  if (file.has(kDetectionFields)) return read_own_detection(text, file, preprocessor, preprocessor_path);
  RfDetrConfig config;
  config.architecture = file.text("model_type").value_or("");
  const bool is_lw_detr = config.architecture == "lw_detr";
  if (!is_lw_detr && config.architecture != "rf_detr") {
    refuse_unsupported_family(config.architecture, file.path("model_type"));
    throw Error(file.path("model_type"), "rf_detr or lw_detr", "\"" + config.architecture.substr(0, 80) + "\"");
  }
  require_defaults(file, {{"attention_bias", true}});
  const Json backbone = file.has("backbone_config") ? file.at("backbone_config") : standard_backbone(is_lw_detr);
  (is_lw_detr ? read_lw_detr_backbone : read_rf_detr_backbone)(backbone, file.path("backbone_config"), config.backbone);
  config.dim = positive_dim(file, "d_model", 256);
  config.projector.hidden =
      static_cast<int64_t>(static_cast<double>(config.dim) * file.number("hidden_expansion").value_or(0.5));
  if (config.projector.hidden < 1 || config.projector.hidden > 1 << 16)
    throw Error(file.path("hidden_expansion"), "1 to 65536 channels", str(config.projector.hidden));
  config.projector.blocks = limited(file, "c2f_num_blocks", 3, kMaxParts);
  config.projector.act = read_act(file, "activation_function", "silu");
  if (is_lw_detr) {
    read_lw_detr_projector(file, config.projector);
  } else {
    require_defaults(file, {{"num_feature_levels", 1}});
    config.projector.norm_eps = file.number("layer_norm_eps").value_or(1e-5);
  }
  read_decoder(file, config);
  if (masks) read_masks(file, config);
  // DeformableDetrImageProcessor finds 100.
  config.max_objects = is_lw_detr ? 100 : config.num_queries;
  config.labels = class_names_of(file);
  read_rf_detr_processor(preprocessor, preprocessor_path, config);
  if (masks && config.masks->downsampling > config.side())
    throw Error(file.path("mask_downsample_ratio"), str("1 to ", config.side(), ", the side of the input"),
                str(config.masks->downsampling));
  return config;
}

}  // namespace vitrail::models
