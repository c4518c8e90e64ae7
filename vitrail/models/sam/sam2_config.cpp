// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/models/preprocessing.h"
#include "vitrail/models/sam/architectures.h"
#include "vitrail/models/sam/sam2_config_internal.h"

namespace vitrail::models {
namespace {

constexpr const char* kTrunk = "image_encoder.trunk.";
constexpr size_t kStages = 4;             // the neck reads maps of strides 4, 8, 16 and 32
constexpr int64_t kEmbeddingStride = 16;  // pixels per cell of the embedding

std::string block_name(int64_t index) { return str(kTrunk, "blocks.", index, "."); }

// Blocks of the same width are a stage.
std::vector<HieraStage> stages_of(const SamShapes& shapes) {
  std::vector<HieraStage> stages;
  for (int64_t i = 0; i < shapes.count(str(kTrunk, "blocks.")); ++i) {
    int64_t dim = stages.empty() ? 0 : stages.back().dim;
    shapes.read(dim, block_name(i) + "norm2.weight", 1, 0);
    if (stages.empty() || dim != stages.back().dim) stages.push_back({.dim = dim, .depth = 0});
    ++stages.back().depth;
  }
  return stages;
}

bool are_alike(const HieraStage& a, const HieraStage& b) { return a.dim == b.dim && a.depth == b.depth; }

// The published model with these widths and depths.
HieraConfig published(const SamShapes& shapes) {
  const std::vector<HieraStage> stages = stages_of(shapes);
  std::string names, widths, depths;
  for (const SamArchitecture& architecture : sam_architectures()) {
    if (!architecture.config.encoder.hiera) continue;
    const HieraConfig& hiera = *architecture.config.encoder.hiera;
    if (std::ranges::equal(stages, hiera.stages, are_alike)) return hiera;
    names += (names.empty() ? "" : ", ") + architecture.name;
  }
  for (const HieraStage& stage : stages) {
    widths += str(widths.empty() ? "" : ", ", stage.dim);
    depths += str(depths.empty() ? "" : ", ", stage.depth);
  }
  throw Error(shapes.where(), str("a SAM 2 of the sizes of ", names, ", or a config.json beside it with its stages"),
              str("widths ", widths, ", depths ", depths));
}

// Sets what shapes show.
void read_widths(const SamShapes& shapes, HieraConfig& hiera) {
  int64_t first = 0;
  for (HieraStage& stage : hiera.stages) {
    shapes.read(stage.dim, block_name(first) + "norm2.weight", 1, 0);
    stage.mlp_hidden = 4 * stage.dim;
    shapes.read(stage.mlp_hidden, block_name(first) + "mlp.fc1.weight", 2, 0);
    first += stage.depth;
  }
  shapes.read(hiera.in_chans, str(kTrunk, "patch_embed.proj.weight"), 4, 1);
  shapes.read(hiera.positions[0], str(kTrunk, "pos_embed"), 4, 2);
  shapes.read(hiera.positions[1], str(kTrunk, "pos_embed"), 4, 3);
  hiera.window_positions = hiera.stages.front().window;
  shapes.read(hiera.window_positions, str(kTrunk, "pos_embed_window"), 4, 2);
}

void require_stages(const HieraConfig& hiera, const std::string& where) {
  const auto pools = std::ranges::count_if(hiera.stages, [](const HieraStage& stage) { return stage.pools; });
  if (hiera.stages.size() == kStages && pools + 1 == std::ssize(hiera.stages)) return;
  throw Error(where, str(kStages, " stages and pooling in all but the first"),
              str(hiera.stages.size(), " stages and pooling in ", pools));
}

int64_t element(const std::vector<int64_t>& values, size_t index, const JsonFields& fields, const char* key) {
  if (index < values.size()) return values[index];
  throw Error(fields.path(key), str("a value for each of ", index + 1, " or more stages"), str(values.size()));
}

}  // namespace

SamEncoderConfig sam2_encoder_config(const SamShapes& shapes, const SamConfigDefaults& defaults) {
  SamEncoderConfig config;
  HieraConfig& hiera = config.hiera.emplace(defaults.hiera ? *defaults.hiera : published(shapes));
  hiera.norm_eps = defaults.norm_eps;
  require_stages(hiera, shapes.where());
  read_widths(shapes, hiera);
  static_cast<void>(hiera_blocks(hiera, shapes.where()));
  const int64_t multiple = hiera.image_multiple();
  const int64_t size = defaults.image_size;
  if (size < multiple || size > kMaxPixels || size % multiple != 0)
    throw Error(shapes.where(), str("an image size up to ", kMaxPixels, " that ", multiple, " divides"), str(size));
  config.patch_size = kEmbeddingStride;
  config.grid = size / kEmbeddingStride;
  config.in_chans = hiera.in_chans;
  config.dim = hiera.stages.back().dim;
  shapes.read(config.out_chans, "image_encoder.neck.convs.0.conv.weight", 4, 0);
  return config;
}

void set_sam2_decoder(SamDecoderConfig& decoder, const SamConfigDefaults& defaults) {
  decoder.object_score = decoder.reads_fine_maps = decoder.iou_sigmoid = decoder.pads_boxes = true;
  decoder.single_mask_stability = defaults.single_mask_stability;
}

void read_sam2_config(const JsonFields& file, SamConfigDefaults& defaults) {
  const JsonFields vision = file.nested("vision_config"), backbone = vision.nested("backbone_config");
  const JsonFields prompts = file.nested("prompt_encoder_config"), decoder = file.nested("mask_decoder_config");
  require_defaults(vision, {{"hidden_act", "gelu"},
                            {"fpn_kernel_size", 1},
                            {"fpn_stride", 1},
                            {"fpn_padding", 0},
                            {"fpn_top_down_levels", {2, 3}},
                            {"num_feature_levels", 3}});
  require_defaults(backbone, {{"hidden_act", "gelu"},
                              {"patch_kernel_size", {7, 7}},
                              {"patch_stride", {kHieraStride, kHieraStride}},
                              {"patch_padding", {3, 3}},
                              {"query_stride", {2, 2}}});
  require_defaults(prompts, {{"hidden_act", "gelu"}, {"layer_norm_eps", 1e-6}, {"patch_size", kEmbeddingStride}});
  require_defaults(decoder, {{"hidden_act", "gelu"}});
  JsonFields::assign(defaults.decoder_heads, decoder.integer("num_attention_heads"));
  JsonFields::assign(defaults.image_size, prompts.integer("image_size"));
  SamStability& stability = defaults.single_mask_stability.emplace();
  JsonFields::assign(stability.delta, decoder.number("dynamic_multimask_stability_delta"));
  JsonFields::assign(stability.threshold, decoder.number("dynamic_multimask_stability_thresh"));
  if (!decoder.boolean("dynamic_multimask_via_stability").value_or(true)) defaults.single_mask_stability.reset();
  const auto list = [&](const char* key, std::vector<int64_t> otherwise) {
    return backbone.integers(key).value_or(std::move(otherwise));
  };
  const std::vector<int64_t> depths = list("blocks_per_stage", {1, 2, 7, 2});
  const std::vector<int64_t> heads = list("num_attention_heads_per_stage", {1, 2, 4, 8});
  const std::vector<int64_t> windows = list("window_size_per_stage", {8, 4, 14, 7});
  const int64_t pools = backbone.integer("num_query_pool_stages").value_or(3);
  HieraConfig& hiera = defaults.hiera.emplace();
  hiera.global_blocks = list("global_attention_blocks", {5, 7, 9});
  for (size_t i = 0; i < depths.size(); ++i) {
    hiera.stages.push_back({.depth = depths[i],
                            .num_heads = element(heads, i, backbone, "num_attention_heads_per_stage"),
                            .window = element(windows, i, backbone, "window_size_per_stage"),
                            .pools = i > 0 && static_cast<int64_t>(i) <= pools});
  }
}

void write_sam2_config(const SamConfig& config, Json& json) {
  json["num_attention_heads"] = config.decoder.num_heads;
  if (config.encoder.hiera->norm_eps != kSamNormEps) json["norm_eps"] = config.encoder.hiera->norm_eps;
  json["stages"] = Json::array();
  for (const HieraStage& stage : config.encoder.hiera->stages) {
    json["stages"].push_back({{"depth", stage.depth}, {"num_heads", stage.num_heads}, {"window", stage.window}});
  }
  json["global_attn_indexes"] = config.encoder.hiera->global_blocks;
  const auto& stability = config.decoder.single_mask_stability;
  json["single_mask_stability"] = stability ? Json{stability->delta, stability->threshold} : Json::array();
}

void read_own_sam2_config(const JsonFields& file, SamConfigDefaults& defaults) {
  if (!file.has("stages")) return;
  JsonFields::assign(defaults.image_size, file.integer("image_size"));
  JsonFields::assign(defaults.decoder_heads, file.integer("num_attention_heads"));
  HieraConfig& hiera = defaults.hiera.emplace();
  for (const Json& each : file.at("stages")) {
    const JsonFields stage(each, file.path("stages"));
    hiera.stages.push_back({.depth = stage.integer("depth").value_or(1),
                            .num_heads = stage.integer("num_heads").value_or(1),
                            .window = stage.integer("window").value_or(0),
                            .pools = !hiera.stages.empty()});
  }
  hiera.global_blocks = file.integers("global_attn_indexes").value_or(std::vector<int64_t>());
  const auto stability = file.numbers("single_mask_stability");
  if (!stability) return;
  defaults.single_mask_stability.reset();
  if (stability->size() == 2) defaults.single_mask_stability = {(*stability)[0], (*stability)[1]};
}

}  // namespace vitrail::models
