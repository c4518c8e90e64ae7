// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/sam/config.h"

#include <algorithm>
#include <optional>

#include "vitrail/base/error.h"
#include "vitrail/models/json_fields_internal.h"
#include "vitrail/models/sam/sam2_config_internal.h"
#include "vitrail/models/sam/shapes_internal.h"

namespace vitrail::models {
namespace {

// A block with tables for another number of positions than the grid's has windows of that size, which pad the map.
// HQ-SAM tells a window of the grid's size from a global block, whose output it reads.
SamBlockConfig block_config(const SamShapes& shapes, int64_t index, int64_t grid, const SamConfigDefaults& defaults) {
  int64_t length = 2 * grid - 1;
  shapes.read(length, str("image_encoder.blocks.", index, ".attn.rel_pos_h"), 2, 0);
  const int64_t positions = (length + 1) / 2;
  const auto& listed = defaults.global_blocks;
  const bool global = listed ? std::ranges::find(*listed, index) != listed->end() : positions == grid;
  return {global ? 0 : positions, length};
}

// What pos_embed shows, from other tensors: loading reports it alone if it is missing.
void read_without_positions(const SamShapes& shapes, const std::string& name, SamEncoderConfig& config) {
  shapes.read(config.dim, name + "patch_embed.proj.weight", 4, 0);
  int64_t longest = 0;
  for (int64_t i = 0; i < shapes.count(name + "blocks."); ++i) {
    int64_t length = 0;
    shapes.read(length, str(name, "blocks.", i, ".attn.rel_pos_h"), 2, 0);
    longest = std::max(longest, length);
  }
  if (longest > 0) config.grid = (longest + 1) / 2;  // a global block has tables for the whole grid
}

SamEncoderConfig encoder_config(const SamShapes& shapes, const SamConfigDefaults& defaults) {
  const std::string name = "image_encoder.", first = name + "blocks.0.";
  SamEncoderConfig config;
  config.norm_eps = defaults.norm_eps;
  read_without_positions(shapes, name, config);
  shapes.read(config.grid, name + "pos_embed", 4, 1);
  shapes.read(config.dim, name + "pos_embed", 4, 3);
  shapes.read(config.patch_size, name + "patch_embed.proj.weight", 4, 2);
  shapes.read(config.in_chans, name + "patch_embed.proj.weight", 4, 1);
  shapes.read(config.head_dim, first + "attn.rel_pos_h", 2, 1);
  int64_t qkv = 3 * config.dim;
  shapes.read(qkv, first + "attn.qkv.weight", 2, 0);
  if (qkv % (3 * config.head_dim) != 0) {
    throw Error(shapes.where(), str(first, "attn.qkv.weight of 3 × heads × ", config.head_dim, " rows"), str(qkv));
  }
  config.num_heads = qkv / (3 * config.head_dim);
  config.qkv_bias = shapes.has(first + "attn.qkv.bias");
  config.mlp_hidden = 4 * config.dim;
  shapes.read(config.mlp_hidden, first + "mlp.lin1.weight", 2, 0);
  shapes.read(config.out_chans, name + "neck.0.weight", 4, 0);
  for (int64_t i = 0; i < shapes.count(name + "blocks."); ++i) {
    config.blocks.push_back(block_config(shapes, i, config.grid, defaults));
  }
  return config;
}

// TinyViT's stages.  The last one keeps the size of the map, so that its cells are 16 pixels wide.
std::vector<SamTinyStage> tiny_stages(const SamShapes& shapes) {
  const std::string layers = "image_encoder.layers.";
  std::vector<SamTinyStage> stages(static_cast<size_t>(shapes.count(layers)));
  for (size_t i = 0; i < stages.size(); ++i) {
    SamTinyStage& stage = stages[i];
    const std::string name = str(layers, i, "."), block = name + "blocks.0.";
    stage.depth = shapes.count(name + "blocks.");
    stage.stride = i + 2 < stages.size() ? 2 : 1;
    shapes.read(stage.out_dim, name + "downsample.conv1.c.weight", 4, 0);
    if (i == 0) {
      shapes.read(stage.dim, block + "conv1.c.weight", 4, 1);
      shapes.read(stage.hidden, block + "conv1.c.weight", 4, 0);
      continue;
    }
    int64_t distances = 1;
    shapes.read(stage.dim, block + "attn.proj.weight", 2, 0);
    shapes.read(stage.hidden, block + "mlp.fc1.weight", 2, 0);
    shapes.read(stage.num_heads, block + "attn.attention_biases", 2, 0);
    shapes.read(distances, block + "attn.attention_biases", 2, 1);
    while (stage.window * stage.window < distances) ++stage.window;
    if (stage.window * stage.window != distances || stage.dim < 1 || stage.dim % stage.num_heads != 0) {
      throw Error(shapes.where(), str(block, "attn with a width that its heads divide and biases of a square window"),
                  str("width ", stage.dim, ", ", stage.num_heads, " heads, ", distances, " biases"));
    }
  }
  return stages;
}

SamEncoderConfig tiny_config(const SamShapes& shapes, int64_t image_size) {
  SamEncoderConfig config;
  config.grid = image_size / config.patch_size;
  if (config.grid < 1 || image_size % config.patch_size != 0) {
    throw Error(shapes.where(), str("an image size that ", config.patch_size, " divides"), str(image_size));
  }
  shapes.read(config.stem, "image_encoder.patch_embed.seq.0.c.weight", 4, 0);
  shapes.read(config.in_chans, "image_encoder.patch_embed.seq.0.c.weight", 4, 1);
  shapes.read(config.out_chans, "image_encoder.neck.0.weight", 4, 0);
  config.stages = tiny_stages(shapes);
  const bool chained = config.stages.size() > 2 && std::ranges::none_of(config.stages, [&](const SamTinyStage& stage) {
                         return (stage.out_dim == 0) != (&stage == &config.stages.back());
                       });
  if (!chained) {
    throw Error(shapes.where(), "three or more stages of TinyViT; all but the last merge patches",
                str(config.stages.size(), " stages"));
  }
  return config;
}

SamDecoderConfig decoder_config(const SamShapes& shapes, int64_t num_heads) {
  const std::string name = "mask_decoder.", layer = name + "transformer.layers.0.";
  SamDecoderConfig config{.num_heads = num_heads};
  shapes.read(config.dim, name + "iou_token.weight", 2, 1);
  shapes.read(config.mask_tokens, name + "mask_tokens.weight", 2, 0);
  config.depth = std::max<int64_t>(1, shapes.count(name + "transformer.layers."));
  config.cross_dim = config.dim / 2;
  shapes.read(config.cross_dim, layer + "cross_attn_token_to_image.q_proj.weight", 2, 0);
  shapes.read(config.mlp_hidden, layer + "mlp.lin1.weight", 2, 0);
  shapes.read(config.upscale_dims[0], name + "output_upscaling.0.weight", 4, 1);
  shapes.read(config.upscale_dims[1], name + "output_upscaling.3.weight", 4, 1);
  shapes.read(config.iou_hidden, name + "iou_prediction_head.layers.0.weight", 2, 0);
  shapes.read(config.mask_chans[0], "prompt_encoder.mask_downscaling.0.weight", 4, 0);
  shapes.read(config.mask_chans[1], "prompt_encoder.mask_downscaling.3.weight", 4, 0);
  config.high_quality = shapes.has(name + "hf_token.weight");
  const bool fits = config.num_heads > 0 && config.dim % config.num_heads == 0 &&
                    config.cross_dim % config.num_heads == 0 && config.dim % config.cross_dim == 0 &&
                    config.dim % 2 == 0 && config.mask_tokens > 1;
  if (!fits) {
    throw Error(
        shapes.where(), str("a mask decoder with 2 or more masks and a width that ", config.num_heads, " heads divide"),
        str("width ", config.dim, ", ", config.cross_dim, " in cross-attention, ", config.mask_tokens, " mask tokens"));
  }
  return config;
}

SamConfig encoder_alone(const SamShapes& shapes, const SamConfigDefaults& defaults) {
  if (!shapes.has("image_encoder.blocks.0.attn.rel_pos_h") || shapes.has_prefix("prompt_encoder.")) {
    throw Error(shapes.where(), "a checkpoint of Segment Anything with its prompt encoder and mask decoder",
                "a checkpoint without a mask decoder");
  }
  SamConfig config{
      .encoder = encoder_config(shapes, defaults), .preprocessing = defaults.preprocessing, .has_decoder = false};
  config.decoder.dim = config.encoder.out_chans;
  return config;
}

constexpr std::array kPreprocessingNames{"segment_anything", "medsam", "segment_anything_2"};

}  // namespace

const char* name_of(SamPreprocessing preprocessing) { return kPreprocessingNames[static_cast<size_t>(preprocessing)]; }

SamPreprocessing sam_preprocessing_from_name(const std::string& name, const std::string& where) {
  const auto* const found = std::ranges::find(kPreprocessingNames, name);
  if (found == kPreprocessingNames.end())
    throw Error(where, "segment_anything, medsam or segment_anything_2", "'" + name + "'");
  return static_cast<SamPreprocessing>(found - kPreprocessingNames.begin());
}

SamConfig sam_config(const std::map<std::string, Shape>& shapes, const std::string& where,
                     const SamConfigDefaults& defaults) {
  const SamShapes read(shapes, where);
  if (!read.has_prefix("mask_decoder.")) return encoder_alone(read, defaults);
  const bool tiny = read.has("image_encoder.patch_embed.seq.0.c.weight");
  const bool hiera = read.has("image_encoder.trunk.patch_embed.proj.weight");
  SamConfig config{hiera  ? sam2_encoder_config(read, defaults)
                   : tiny ? tiny_config(read, defaults.image_size)
                          : encoder_config(read, defaults),
                   decoder_config(read, defaults.decoder_heads), defaults.preprocessing};
  if (hiera) set_sam2_decoder(config.decoder, defaults);
  if (config.encoder.out_chans != config.decoder.dim) {
    throw Error(where, str("an image encoder with the mask decoder's width ", config.decoder.dim),
                str(config.encoder.out_chans));
  }
  const bool has_global =
      tiny || std::ranges::any_of(config.encoder.blocks, [](const SamBlockConfig& block) { return block.window == 0; });
  if (config.decoder.high_quality && !has_global) {
    throw Error(where, "an image encoder with a global block, which HQ-SAM reads", "windows in all blocks");
  }
  return config;
}

std::string write_sam_config(const SamConfig& config) {
  Json json{{"architecture", "segment_anything"}, {"image_size", config.encoder.image_size()}};
  if (config.preprocessing != SamPreprocessing::segment_anything) json["preprocessing"] = name_of(config.preprocessing);
  if (config.encoder.hiera) {
    write_sam2_config(config, json);
    return json.dump(2) + "\n";
  }
  if (config.encoder.norm_eps != kSamNormEps) json["norm_eps"] = config.encoder.norm_eps;
  // Their tables do not tell windows of the grid's size from global blocks.
  const auto& blocks = config.encoder.blocks;
  if (std::ranges::find(blocks, config.encoder.grid, &SamBlockConfig::window) != blocks.end()) {
    json["global_attn_indexes"] = Json::array();
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (blocks[i].window == 0) json["global_attn_indexes"].push_back(i);
    }
  }
  return json.dump(2) + "\n";
}

}  // namespace vitrail::models
