// SPDX-License-Identifier: Apache-2.0
// config.json of Hiera: transformers' and timm's.  Absent fields have the defaults of their classes.
#include <algorithm>
#include <functional>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/models/hiera/classifier.h"
#include "vitrail/models/json_fields_internal.h"

namespace vitrail::models {
namespace {

constexpr int64_t kMaxStages = 8, kMaxDim = 1 << 15;

// What both libraries say of the stages, under names of their own.
struct Stages {
  int64_t dim = 96;  // In the first stage; doubles from stage to stage.
  std::vector<int64_t> depths{2, 3, 16, 3}, heads{1, 2, 4, 8};
  std::vector<bool> masked{true, true, false, false};  // attention within mask units
  int64_t pools = 3, mask_unit = 8;
  double mlp_ratio = 4;
};

std::vector<HieraStage> stages_of(const Stages& from, const std::string& where) {
  const auto count = std::ssize(from.depths);
  const bool fits = count > 0 && count <= kMaxStages && std::ssize(from.heads) == count &&
                    std::ssize(from.masked) == count && from.pools < count && from.dim > 0 && from.dim <= kMaxDim &&
                    from.mlp_ratio > 0 && from.mlp_ratio <= 64;
  if (!fits) {
    throw Error(
        where,
        str("1 to ", kMaxStages, " stages with depths, heads and a kind of attention each, and pooling in fewer"),
        str(count, " depths, ", from.heads.size(), " heads, ", from.masked.size(), " kinds of attention, pooling in ",
            from.pools, ", width ", from.dim, ", MLPs of ", from.mlp_ratio, " times the width"));
  }
  // A stage with mask units behind one without would need units of its own in its first block.
  if (!std::ranges::is_sorted(from.masked, std::greater<>()))
    throw Error(where, "attention within mask units in the first stages alone", "in a later one");
  if (const int64_t sides = int64_t{1} << std::max<int64_t>(from.pools, 0); from.mask_unit % sides != 0)
    throw Error(where, str("mask units whose sides ", sides, " divides, which is what pooling does"),
                str(from.mask_unit));
  std::vector<HieraStage> stages;
  int64_t unit = from.mask_unit;
  for (size_t i = 0; i < from.depths.size(); ++i) {
    const bool pools = i > 0 && static_cast<int64_t>(i) <= from.pools;
    if (pools) unit /= 2;
    const int64_t dim = from.dim << i;
    stages.push_back({.dim = dim,
                      .depth = from.depths[i],
                      .num_heads = from.heads[i],
                      .window = from.masked[i] ? unit : 0,
                      .mlp_hidden = static_cast<int64_t>(static_cast<double>(dim) * from.mlp_ratio),
                      .pools = pools});
  }
  return stages;
}

std::vector<bool> booleans(const JsonFields& file, const char* key, std::vector<bool> otherwise) {
  if (!file.has(key)) return otherwise;
  const Json& values = file.at(key);
  const bool fits = values.is_array() && std::ranges::all_of(values, [](const Json& v) { return v.is_boolean(); });
  if (!fits) throw Error(file.path(key), "an array of true and false", values.dump().substr(0, 80));
  return values.get<std::vector<bool>>();
}

int64_t square_unit(const JsonFields& file, const char* key) {
  const std::array<int64_t, 2> unit = file.size(key).value_or(std::array<int64_t, 2>{8, 8});
  if (unit[0] != unit[1] || unit[0] < 1 || unit[0] > 256)
    throw Error(file.path(key), "a square of 1 to 256 cells a side", str(unit[0], "×", unit[1]));
  return unit[0];
}

Stages read_transformers_stages(const JsonFields& file) {
  require_defaults(file, {{"hidden_act", "gelu"},
                          {"patch_size", {7, 7}},
                          {"patch_stride", {kHieraStride, kHieraStride}},
                          {"patch_padding", {3, 3}},
                          {"query_stride", {2, 2}},
                          {"embed_dim_multiplier", 2.0}});
  Stages stages;
  JsonFields::assign(stages.dim, file.integer("embed_dim"));
  JsonFields::assign(stages.depths, file.integers("depths"));
  JsonFields::assign(stages.heads, file.integers("num_heads"));
  JsonFields::assign(stages.pools, file.integer("num_query_pool"));
  JsonFields::assign(stages.mlp_ratio, file.number("mlp_ratio"));
  stages.masked = booleans(file, "masked_unit_attention", stages.masked);
  stages.mask_unit = square_unit(file, "masked_unit_size");
  return stages;
}

struct TimmRow {
  const char* name;
  int64_t dim, heads;
  std::vector<int64_t> depths;
};

// timm/models/hiera.py.
const TimmRow& timm_row(const std::string& architecture, const std::string& where) {
  static const std::vector<TimmRow> rows{
      {"hiera_tiny_224", 96, 1, {1, 2, 7, 2}},    {"hiera_small_224", 96, 1, {1, 2, 11, 2}},
      {"hiera_base_224", 96, 1, {2, 3, 16, 3}},   {"hiera_base_plus_224", 112, 2, {2, 3, 16, 3}},
      {"hiera_large_224", 144, 2, {2, 6, 36, 4}}, {"hiera_huge_224", 256, 4, {2, 6, 36, 4}}};
  const std::string name = architecture.substr(0, architecture.find('.'));
  const auto found = std::ranges::find(rows, name, &TimmRow::name);
  if (found == rows.end()) throw Error(where, join(rows, ", ", &TimmRow::name), "\"" + name.substr(0, 80) + "\"");
  return *found;
}

Stages read_timm_stages(const JsonFields& file) {
  const TimmRow& row = timm_row(*file.text("architecture"), file.path("architecture"));
  const JsonFields args = file.nested("model_args");
  require_defaults(args, {{"patch_kernel", {7, 7}},
                          {"patch_stride", {kHieraStride, kHieraStride}},
                          {"patch_padding", {3, 3}},
                          {"q_stride", {2, 2}},
                          {"dim_mul", 2.0},
                          {"head_mul", 2.0},
                          {"use_expand_proj", true},
                          {"init_values", nullptr},
                          {"sep_pos_embed", false},
                          {"abs_win_pos_embed", false}});
  Stages stages{.dim = args.integer("embed_dim").value_or(row.dim),
                .depths = args.integers("stages").value_or(row.depths)};
  const int64_t heads = args.integer("num_heads").value_or(row.heads);
  stages.heads.clear();
  for (size_t i = 0; i < std::min<size_t>(stages.depths.size(), kMaxStages); ++i) stages.heads.push_back(heads << i);
  JsonFields::assign(stages.pools, args.integer("q_pool"));
  JsonFields::assign(stages.mlp_ratio, args.number("mlp_ratio"));
  stages.masked = booleans(args, "mask_unit_attn", stages.masked);
  stages.mask_unit = square_unit(args, "mask_unit_size");
  return stages;
}

// The file as one of a Vision Transformer, whose reader knows labels, classes and preprocessing.
Json as_transformers_vit(const JsonFields& file, const HieraConfig& trunk) {
  Json json = file.object();
  json["model_type"] = "vit";
  json["hidden_size"] = trunk.stages.back().dim;
  json["num_attention_heads"] = trunk.stages.back().num_heads;
  json["num_hidden_layers"] = 1;
  json["patch_size"] = kHieraStride;
  return json;
}

Json as_timm_vit(const JsonFields& file, const HieraConfig& trunk) {
  Json json = file.object();
  const JsonFields args = file.nested("model_args");
  Json vit{{"embed_dim", trunk.stages.back().dim},
           {"num_heads", trunk.stages.back().num_heads},
           {"depth", 1},
           {"patch_size", kHieraStride},
           {"class_token", false},
           {"global_pool", "avg"}};
  for (const char* key : {"img_size", "in_chans"}) {
    if (args.has(key)) vit[key] = args.at(key);
  }
  json["architecture"] = "vit";
  json["model_args"] = vit;
  json.erase("global_pool");
  return json;
}

}  // namespace

HieraClassifierConfig read_hiera_config(const std::string& text, const std::string& path,
                                        const std::string& preprocessor, const std::string& preprocessor_path) {
  const Json json = parse_json(text, path);
  const JsonFields file(json, path);
  const std::string type = file.text("model_type").value_or("");
  const bool timm = file.text("architecture").has_value();
  if (!timm && type != "hiera") throw Error(path, "model_type hiera, or an architecture of timm", "\"" + type + "\"");
  HieraClassifierConfig config;
  config.trunk.stages = stages_of(timm ? read_timm_stages(file) : read_transformers_stages(file), path);
  config.trunk.norm_eps = (timm ? std::nullopt : file.number("layer_norm_eps")).value_or(config.trunk.norm_eps);
  static_cast<void>(hiera_blocks(config.trunk, path));
  const Json as_vit = timm ? as_timm_vit(file, config.trunk) : as_transformers_vit(file, config.trunk);
  config.classes = parse_model_config(as_vit.dump(), preprocessor, path, "", preprocessor_path);
  config.classes.architecture = timm ? *file.text("architecture") : type;
  const VisionTransformerConfig& vit = config.classes.vit;
  config.trunk.in_chans = vit.in_chans;
  config.trunk.positions = {vit.img_size[0] / kHieraStride, vit.img_size[1] / kHieraStride};
  config.preprocessing = config.classes.preprocessing;
  return config;
}

}  // namespace vitrail::models
