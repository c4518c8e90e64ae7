// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/rf_detr/key_maps_internal.h"

#include "vitrail/base/error.h"

namespace vitrail::models {
namespace {

// The blocks behind the last map, whose keys begin with `path`, are dropped.
std::string dropped_blocks(const RfDetrBackboneConfig& config, const char* path) {
  std::string indices;
  for (int64_t i = config.vit.depth; i < config.file_depth; ++i) indices += str(indices.empty() ? "" : "|", i);
  return indices.empty() ? "" : str(R"~({"from": ")~", path, "(?:", indices, R"~()\\..*", "drop": true},)~");
}

// "0|1|2": the numbers of the groups.
std::string group_numbers(const RfDetrConfig& config) {
  std::string numbers;
  for (int64_t i = 0; i < config.groups; ++i) numbers += str(i == 0 ? "" : "|", i);
  return numbers;
}

std::string query_rows(const RfDetrConfig& config) { return str(config.groups * config.num_queries); }

// The names of RF-DETR's and LW-DETR's authors, and those of RfDetr's parameters.  Files may have more groups of
// queries and proposals than the configuration.
std::string rf_detr_keys(const RfDetrConfig& config) {
  const std::string rows = query_rows(config), groups = group_numbers(config);
  return R"~({"name": "rf_detr", "base": "huggingface_dinov2",
    "base_prefix": ["backbone\\.0\\.encoder\\.encoder\\.", "backbone."],
    "rules": [
    {"from": ".*num_batches_tracked", "drop": true},)~" +
         dropped_blocks(config.backbone, R"~(backbone\\.0\\.encoder\\.encoder\\.encoder\\.layer\\.)~") +
         dropped_blocks(config.backbone, R"~(backbone\\.0\\.encoder\\.blocks\\.)~") + R"~(
    {"from": "backbone\\.0\\.encoder\\.(blocks\\.\\d+)\\.gamma_([12])", "to": "backbone.$1.ls$2.gamma"},
    {"from": "backbone\\.0\\.encoder\\.((?:pos_embed|patch_embed|blocks).*)", "to": "backbone.$1"},
    {"from": "backbone\\.0\\.projector\\.stages_sampling\\.(\\d+)\\.(\\d+)\\.(\\d+)\\.bn\\.(.*)",
     "to": "projector.$1.sampling.$2.layers.$3.norm.$4"},
    {"from": "backbone\\.0\\.projector\\.stages_sampling\\.(\\d+)\\.(\\d+)\\.(\\d+)\\.(.*)",
     "to": "projector.$1.sampling.$2.layers.$3.$4"},
    {"from": "backbone\\.0\\.projector\\.stages\\.(\\d+)\\.0\\.(.*)\\.bn\\.(.*)", "to": "projector.$1.$2.norm.$3"},
    {"from": "backbone\\.0\\.projector\\.stages\\.(\\d+)\\.0\\.(.*)", "to": "projector.$1.$2"},
    {"from": "backbone\\.0\\.projector\\.stages\\.(\\d+)\\.1\\.(.*)", "to": "projector.$1.norm.$2"},
    {"from": "transformer\\.(enc_(?:output|output_norm|out_class_embed|out_bbox_embed))\\.()~" +
         groups + R"~()\\.(.*)", "to": "transformer.$2.$1.$3"},
    {"from": "transformer\\.enc_(?:output|output_norm|out_class_embed|out_bbox_embed)\\.\\d+\\..*", "drop": true},
    {"from": "transformer\\.()~" +
         groups + R"~()\\.(.*)", "to": "transformer.$1.$2"},
    {"from": "transformer\\.\\d+\\..*", "drop": true},
    {"from": "transformer\\.decoder\\.layers\\.(\\d+)\\.self_attn\\.in_proj_(weight|bias)",
     "to": ["decoder.layers.$1.self_attn.q_proj.$2", "decoder.layers.$1.self_attn.k_proj.$2",
            "decoder.layers.$1.self_attn.v_proj.$2"], "split": [1, 1, 1]},
    {"from": "transformer\\.decoder\\.(.*)", "to": "decoder.$1"},
    {"from": "(refpoint_embed|query_feat)\\.weight", "to": "$1.weight", "rows": )~" +
         rows + "}]}";
}

// transformers' names of LW-DETR.
std::string lw_detr_keys(const RfDetrConfig& config) {
  const std::string rows = query_rows(config);
  std::string rules = R"~({"name": "huggingface_lw_detr", "rules": [
    {"from": ".*num_batches_tracked", "drop": true},)~" +
                      dropped_blocks(config.backbone, R"~(model\\.backbone\\.backbone\\.encoder\\.layer\\.)~") + R"~(
    {"from": "model\\.backbone\\.backbone\\.embeddings\\.position_embeddings", "to": "backbone.pos_embed"},
    {"from": "model\\.backbone\\.backbone\\.embeddings\\.projection\\.(.*)", "to": "backbone.patch_embed.proj.$1"},)~";
  const auto block = [&](const char* from, const char* to, const char* part = "") {
    rules += str(R"~(
    {"from": "model\\.backbone\\.backbone\\.encoder\\.layer\\.(\\d+)\\.)~",
                 from, R"~(", "to": "backbone.blocks.$1.)~", to, "\"", part, "},");
  };
  block(R"~(gamma_([12]))~", "ls$2.gamma");
  block(R"~(layernorm_before\\.(.*))~", "norm1.$2");
  block(R"~(layernorm_after\\.(.*))~", "norm2.$2");
  block(R"~(intermediate\\.(.*))~", "mlp.$2");
  block(R"~(attention\\.attention\\.query\\.weight)~", "attn.qkv.weight", R"~(, "part": [0, 3])~");
  block(R"~(attention\\.attention\\.key\\.weight)~", "attn.qkv.weight", R"~(, "part": [1, 3])~");
  block(R"~(attention\\.attention\\.value\\.weight)~", "attn.qkv.weight", R"~(, "part": [2, 3])~");
  block(R"~(attention\\.attention\\.query\\.bias)~", "attn.q_bias");
  block(R"~(attention\\.attention\\.value\\.bias)~", "attn.v_bias");
  block(R"~(attention\\.output\\.(.*))~", "attn.proj.$2");
  return rules + R"~(
    {"from": "model\\.backbone\\.projector\\.scale_layers\\.(\\d+)\\.sampling_layers\\.(.*)",
     "to": "projector.$1.sampling.$2"},
    {"from": "model\\.backbone\\.projector\\.scale_layers\\.(\\d+)\\.projector_layer\\.conv([12])\\.(.*)",
     "to": "projector.$1.cv$2.$3"},
    {"from": "model\\.backbone\\.projector\\.scale_layers\\.(\\d+)\\.projector_layer\\.bottlenecks\\.(\\d+)\\.conv(.*)",
     "to": "projector.$1.m.$2.cv$3"},
    {"from": "model\\.backbone\\.projector\\.scale_layers\\.(\\d+)\\.layer_norm\\.(.*)", "to": "projector.$1.norm.$2"},
    {"from": "model\\.(enc_(?:output|output_norm|out_class_embed|out_bbox_embed))\\.()~" +
         group_numbers(config) + R"~()\\.(.*)", "to": "transformer.$2.$1.$3"},
    {"from": "model\\.enc_(?:output|output_norm|out_class_embed|out_bbox_embed)\\.\\d+\\..*", "drop": true},
    {"from": "model\\.decoder\\.layernorm\\.(.*)", "to": "decoder.norm.$1"},
    {"from": "model\\.decoder\\.(layers\\.\\d+)\\.self_attn\\.o_proj\\.(.*)", "to": "decoder.$1.self_attn.out_proj.$2"},
    {"from": "model\\.decoder\\.(layers\\.\\d+)\\.self_attn_layer_norm\\.(.*)", "to": "decoder.$1.norm1.$2"},
    {"from": "model\\.decoder\\.(layers\\.\\d+)\\.cross_attn_layer_norm\\.(.*)", "to": "decoder.$1.norm2.$2"},
    {"from": "model\\.decoder\\.(layers\\.\\d+)\\.layer_norm\\.(.*)", "to": "decoder.$1.norm3.$2"},
    {"from": "model\\.decoder\\.(layers\\.\\d+)\\.mlp\\.fc([12])\\.(.*)", "to": "decoder.$1.linear$2.$3"},
    {"from": "model\\.decoder\\.(.*)", "to": "decoder.$1"},
    {"from": "model\\.reference_point_embed\\.weight", "to": "refpoint_embed.weight", "rows": )~" +
         rows + R"~(},
    {"from": "model\\.query_feat\\.weight", "to": "query_feat.weight", "rows": )~" +
         rows + "}]}";
}

}  // namespace

weights::KeyMap rf_detr_key_map(const weights::Checkpoint& file, const RfDetrConfig& config) {
  return weights::KeyMap::parse(file.has(kRfDetrQueries) ? rf_detr_keys(config) : lw_detr_keys(config), "key map");
}

}  // namespace vitrail::models
