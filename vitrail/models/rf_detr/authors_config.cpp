// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/rf_detr/authors_config_internal.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "vitrail/base/error.h"
#include "vitrail/models/json_fields_internal.h"

namespace vitrail::models {
namespace {

// The names of COCO's 91 ids.
constexpr std::string_view kCocoNames =
    "N/A,person,bicycle,car,motorcycle,airplane,bus,train,truck,boat,traffic light,fire hydrant,N/A,stop sign,parking "
    "meter,bench,bird,cat,dog,horse,sheep,cow,elephant,bear,zebra,giraffe,N/A,backpack,umbrella,N/A,N/A,handbag,tie,"
    "suitcase,frisbee,skis,snowboard,sports ball,kite,baseball bat,baseball glove,skateboard,surfboard,tennis racket,"
    "bottle,N/A,wine glass,cup,fork,knife,spoon,bowl,banana,apple,sandwich,orange,broccoli,carrot,hot dog,pizza,donut,"
    "cake,chair,couch,potted plant,bed,N/A,dining table,N/A,N/A,toilet,N/A,tv,laptop,mouse,remote,keyboard,cell phone,"
    "microwave,oven,toaster,sink,refrigerator,N/A,book,clock,vase,scissors,teddy bear,hair drier,toothbrush";

class AuthorsShapes {
 public:
  explicit AuthorsShapes(const weights::Checkpoint& file) : file_(file) {}

  int64_t size(const std::string& name, int axis) const {
    const Shape& shape = file_.info(name).shape;
    if (axis >= shape.rank())
      throw Error(file_.path() + ": " + name, str("at least ", axis + 1, " axes"), shape.to_string());
    return shape[axis];
  }
  // The number of modules prefix0suffix, prefix1suffix, …
  int64_t count(const std::string& prefix, const std::string& suffix) const {
    int64_t i = 0;
    while (file_.has(str(prefix, i, suffix))) ++i;
    return i;
  }

 private:
  const weights::Checkpoint& file_;
};

Json class_names_of_coco() {
  Json names = Json::object();
  std::istringstream text{std::string(kCocoNames)};
  std::string name;
  for (int id = 0; std::getline(text, name, ','); ++id) names[std::to_string(id)] = name;
  return names;
}

}  // namespace

RfDetrTexts rf_detr_texts_of(const weights::Checkpoint& file) {
  const AuthorsShapes shapes(file);
  const std::string vit = "backbone.0.encoder.encoder.", projector = "backbone.0.projector.stages.",
                    layers = "transformer.decoder.layers.";
  if (const int64_t maps = shapes.count(projector, ".1.weight"); maps != 1)
    throw Error(file.path(), "weights of RF-DETR with one map for the decoder, or config.json beside them",
                str(maps, " maps"));
  constexpr int64_t kHeadDim = 64, kSelfHeadDim = 32, kCrossHeadDim = 16, kDepth = 12;
  if (const int64_t depth = shapes.count(vit + "encoder.layer.", ".norm1.weight"); depth != kDepth)
    throw Error(file.path(), str(kDepth, " blocks, or config.json beside the weights"), str(depth, " blocks"));
  const int64_t hidden = shapes.size(vit + "embeddings.cls_token", 2);
  const int64_t patch = shapes.size(vit + "embeddings.patch_embeddings.projection.weight", 2);
  const int64_t positions = shapes.size(vit + "embeddings.position_embeddings", 1) - 1;
  const auto grid = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(positions))));
  const int64_t dim = shapes.size("class_embed.weight", 1), classes = shapes.size("class_embed.weight", 0);
  if (hidden % kHeadDim != 0 || dim % kSelfHeadDim != 0 || hidden == 0 || dim == 0) {
    throw Error(
        file.path(),
        str("widths that are multiples of ", kHeadDim, " and ", kSelfHeadDim, ", or config.json beside the weights"),
        str(hidden, " and ", dim));
  }
  const int64_t cross_heads = dim / kCrossHeadDim;
  // Base has the patches and the positions of DINOv2; the others have positions for their resolution.
  const bool is_base = patch == 14, is_seg_nano = patch == 12 && grid == 26;
  const int64_t windows = is_base ? 4 : is_seg_nano ? 1 : 2;
  const int64_t side = is_base ? 560 : grid * patch;
  const int64_t groups = std::max<int64_t>(shapes.count("transformer.enc_output.", ".weight"), 1);
  Json config{{"model_type", "rf_detr"},
              {"backbone_config",
               {{"model_type", "rf_detr_dinov2"},
                {"hidden_size", hidden},
                {"num_hidden_layers", kDepth},
                {"num_attention_heads", hidden / kHeadDim},
                {"image_size", grid * patch},
                {"patch_size", patch},
                {"num_windows", windows},
                {"out_indices", is_base ? Json{2, 5, 8, 11} : Json{3, 6, 9, 12}}}},
              {"d_model", dim},
              {"c2f_num_blocks", shapes.count(projector + "0.0.m.", ".cv1.conv.weight")},
              {"hidden_expansion",
               static_cast<double>(shapes.size(projector + "0.0.m.0.cv1.conv.weight", 0)) / static_cast<double>(dim)},
              {"layer_norm_eps", 1e-6},
              {"decoder_layers", shapes.count(layers, ".norm1.weight")},
              {"decoder_ffn_dim", shapes.size(layers + "0.linear1.weight", 0)},
              {"decoder_self_attention_heads", dim / kSelfHeadDim},
              {"decoder_cross_attention_heads", cross_heads},
              {"decoder_n_points", shapes.size(layers + "0.cross_attn.attention_weights.weight", 0) / cross_heads},
              {"num_queries", shapes.size("refpoint_embed.weight", 0) / groups},
              {"group_detr", groups}};
  if (file.has("segmentation_head.bias"))
    config["intermediate_size"] = shapes.size("segmentation_head.query_features_block.layers.0.weight", 0);
  constexpr int64_t kCocoIds = 91;
  if (classes == kCocoIds) {
    config["id2label"] = class_names_of_coco();
  } else {
    config["num_labels"] = classes;
  }
  const Json preprocessor{{"image_processor_type", "RfDetrImageProcessor"},
                          {"size", {{"height", side}, {"width", side}}}};
  return {config.dump(2), preprocessor.dump(2)};
}

}  // namespace vitrail::models
