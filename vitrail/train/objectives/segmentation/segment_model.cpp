// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/segmentation/segment_model_internal.h"

#include <map>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/models/load.h"
#include "vitrail/nn/positional_encoding.h"
#include "vitrail/train/objectives/classification/model_setup_internal.h"

namespace vitrail::train {
namespace {

using models::VisionTransformerConfig;

std::string unsupported_parts(const VisionTransformerConfig& vit) {
  std::vector<std::string> parts;
  const auto refuse = [&](bool has, const char* part) {
    if (has) parts.emplace_back(part);
  };
  refuse(vit.in_chans != 3, "images that are not RGB");
  refuse(vit.img_size[0] != vit.img_size[1] || vit.patch_size[0] != vit.patch_size[1],
         "images or patches that are not square");
  refuse(vit.attn_type != models::AttentionType::plain || vit.qk_norm || vit.qk_scale || vit.scale_attn_inner,
         "another attention");
  refuse(vit.norm_layer != nn::NormLayer::layer_norm || !vit.norm_first || vit.use_post_norm || vit.pre_norm,
         "other norms");
  refuse(!vit.proj_bias || !vit.patch_bias.value_or(true), "no bias in the projection");
  refuse(vit.use_rel_pos_bias || vit.use_shared_rel_pos_bias || vit.use_rot_pos_emb, "relative or rotary positions");
  refuse(vit.pos_embed != models::PositionEmbedding::learned, "no learned positions");
  refuse(vit.patch_norm != models::PatchNorm::none, "norms of patches");
  refuse(vit.act_layer != kernels::Activation::gelu || vit.mlp_layer != models::MlpLayer::mlp || vit.swiglu_mlp ||
             vit.scale_mlp,
         "another MLP");
  return join(parts);
}

// Copies the image encoder's parameters from a Vision Transformer.
class EncoderTransfer {
 public:
  EncoderTransfer(const models::VisionTransformer& source, const models::Preprocessing& preprocessing)
      : source_(source.config()), preprocessing_(preprocessing) {
    models::use_unit_range(preprocessing_);
    for (const nn::NamedTensor& parameter : source.named_parameters()) from_[parameter.name] = parameter.tensor;
  }

  void initialize(const nn::NamedTensor& parameter) {
    constexpr std::string_view kEncoder = "image_encoder.";
    if (!parameter.name.starts_with(kEncoder)) return;
    std::string name = parameter.name.substr(kEncoder.size());
    if (name.starts_with("neck.") || name.find("rel_pos_") != name.npos) return;
    for (const auto& [sam, vit] :
         {std::pair<std::string, std::string>{"mlp.lin1", "mlp.fc1"}, {"mlp.lin2", "mlp.fc2"}}) {
      if (const size_t at = name.find(sam); at != name.npos) name.replace(at, sam.size(), vit);
    }
    Tensor from = from_.contains(name) ? from_[name] : Tensor();
    if (name == "pos_embed") from = positions(from, parameter.tensor.shape());
    if (!from.defined() || !(from.shape() == parameter.tensor.shape())) {
      throw Error("model.init", str("a Vision Transformer with ", name, " ", parameter.tensor.shape()),
                  from.defined() ? from.shape().to_string() : "none");
    }
    parameter.tensor.copy_(from);
    apply_layer_scale(name, parameter.tensor);
  }

  // Normalisation with other statistics is an affine map of the encoder's input, and so of the patch embedding:
  // (v − mean) / std of the checkpoint = ((v − m) / s) · s / std + (m − mean) / std.
  void fold_normalisation(const models::Sam& model) {
    if (!preprocessing_.mean || !preprocessing_.std) return;
    const Tensor weight = model.parameter("image_encoder.patch_embed.proj.weight");
    const Tensor bias = model.parameter("image_encoder.patch_embed.proj.bias");
    const int64_t area = weight.size(2) * weight.size(3);
    for (int64_t i = 0; i < weight.numel(); ++i) {
      const auto c = static_cast<size_t>(i / area % 3);
      const auto at = [&](const std::vector<double>& values) { return values[values.size() == 1 ? 0 : c]; };
      const double mean = at(*preprocessing_.mean), std = at(*preprocessing_.std);
      const double m = models::kSamImageMean[c] / 255.0, s = models::kSamImageStd[c] / 255.0;
      float& w = weight.data<float>()[i];
      bias.data<float>()[i / (3 * area)] += static_cast<float>(w * (m - mean) / std);
      w = static_cast<float>(w * s / std);
    }
  }

  std::vector<std::string> notes;

 private:
  // [1, prefix + h·w, C] → [1, h', w', C]
  Tensor positions(const Tensor& from, const Shape& shape) {
    const std::array<int64_t, 2> old{source_.img_size[0] / source_.patch_size[0],
                                     source_.img_size[1] / source_.patch_size[1]},
        grid{shape[1], shape[2]};
    const int64_t prefix = from.size(1) - old[0] * old[1];
    const Tensor patches = from.narrow(1, prefix, old[0] * old[1]).contiguous();
    if (old == grid) return patches.view(shape);
    notes.push_back(str("positions: interpolated from ", old[0], "×", old[1], " to ", grid[0], "×", grid[1]));
    return nn::resample_positions(patches, 0, old, grid, source_.pos_interp).contiguous().view(shape);
  }

  // y · γ of a linear layer's output: its rows are scaled.
  void apply_layer_scale(const std::string& name, const Tensor& to) {
    const size_t block = name.find('.', std::string("blocks.").size());
    const bool attention = name.find(".attn.proj.") != name.npos, mlp = name.find(".mlp.fc2.") != name.npos;
    if (!source_.init_values || (!attention && !mlp)) return;
    const auto gamma = from_.find(name.substr(0, block) + (attention ? ".ls1.gamma" : ".ls2.gamma"));
    if (gamma == from_.end()) return;
    const int64_t columns = to.numel() / to.size(0);
    for (int64_t i = 0; i < to.numel(); ++i) {
      to.data<float>()[i] *= gamma->second.contiguous().data<float>()[i / columns];
    }
  }

  const VisionTransformerConfig& source_;
  models::Preprocessing preprocessing_;
  std::map<std::string, Tensor> from_;
};

std::vector<std::string> frozen_of(const Recipe& recipe) {
  std::vector<std::string> frozen = recipe.model.freeze;
  frozen.push_back("prompt_encoder.pe_layer.*");  // drawn once
  if (!segment_of(recipe).train_encoder) {
    frozen.push_back("regex:image_encoder\\.(?!neck\\.).*");
  }
  return frozen;
}

models::SamDecoderConfig decoder_config(const SegmentRecipe& recipe, int64_t dim) {
  models::SamDecoderConfig config;
  config.dim = dim;
  config.depth = recipe.decoder_depth;
  config.mlp_hidden = recipe.decoder_mlp;
  config.cross_dim = dim / 2;
  config.upscale_dims[0] = dim / 4;
  config.upscale_dims[1] = dim / 8;
  config.iou_hidden = dim;
  return config;
}

// The blocks' windows and tables for another grid: a window that covers it becomes global attention.
models::SamConfig config_of_size(models::SamConfig config, int64_t size) {
  models::SamEncoderConfig& encoder = config.encoder;
  if (!encoder.stages.empty()) {
    throw Error("segment.image_size", str(encoder.image_size(), " of this MobileSAM, or 0"), str(size));
  }
  if (size % encoder.patch_size != 0) {
    throw Error("segment.image_size", str("a multiple of the patch size ", encoder.patch_size), str(size));
  }
  encoder.grid = size / encoder.patch_size;
  for (models::SamBlockConfig& block : encoder.blocks) {
    if (block.window >= encoder.grid) block.window = 0;
    if (block.window == 0) block.table_length = 2 * encoder.grid - 1;
  }
  return config;
}

// The model for images of another size: its positions and relative positions are interpolated.
models::Sam resized(const models::Sam& source, int64_t size) {
  RandomParams random(0);  // all of them are replaced
  models::Sam model(config_of_size(source.config(), size), ParamSource(random));
  const int64_t from = source.config().encoder.grid, to = model.config().encoder.grid;
  for (const nn::NamedTensor& parameter : model.named_parameters()) {
    Tensor value = source.parameter(parameter.name);
    if (parameter.name == "image_encoder.pos_embed") {
      const Tensor cells = value.contiguous().view({1, from * from, value.size(3)});
      value = nn::resample_positions(cells, 0, {from, from}, {to, to}, {}).contiguous().view(parameter.tensor.shape());
    } else if (parameter.name.find(".rel_pos_") != std::string::npos) {
      value = models::relative_position_table(value, (parameter.tensor.size(0) + 1) / 2);
    }
    parameter.tensor.copy_(value);
  }
  return model;
}

// The model with a new mask decoder as the recipe says.
models::Sam with_decoder(const models::Sam& encoder, const Recipe& recipe) {
  models::SamConfig config = encoder.config();
  config.has_decoder = true;
  config.decoder = decoder_config(segment_of(recipe), config.encoder.out_chans);
  RandomParams random(recipe.seed);
  models::Sam model(config, ParamSource(random));
  for (const nn::NamedTensor& parameter : encoder.named_parameters())
    model.parameter(parameter.name).copy_(parameter.tensor);
  return model;
}

PreparedSam fine_tuned(const Recipe& recipe, const models::ModelFiles& files, std::vector<std::string> frozen) {
  for (const auto& [field, value] :
       {std::pair("model.config", recipe.model.config), {"model.key_map", recipe.model.key_map}})
    if (!value.empty()) throw Error(field, "none for a checkpoint of Segment Anything in model.init", value);
  models::Sam model = models::load_sam(files);
  std::vector<std::string> notes;
  if (!model.config().has_decoder) {
    model = with_decoder(model, recipe);
    notes.push_back("prompt encoder and mask decoder: new");
  }
  if (model.config().decoder.high_quality || model.config().encoder.hiera) {
    throw Error(recipe.model.init, "a checkpoint of Segment Anything or MobileSAM to train",
                model.config().encoder.hiera ? "SAM 2" : "HQ-SAM");
  }
  if (segment_of(recipe).train_encoder && !model.config().encoder.stages.empty()) {
    throw Error("segment.train_encoder", "false for MobileSAM, whose encoder has batch normalisation", "true");
  }
  if (model.config().encoder.in_chans != 3) throw Error(recipe.model.init, "a model of RGB images", "another one");
  const int64_t size = model.config().encoder.image_size(), asked = segment_of(recipe).image_size;
  if (asked == 0 || asked == size) return {std::move(model), std::move(notes), std::move(frozen)};
  notes.push_back(str("positions: interpolated from ", size, "×", size, " to ", asked, "×", asked, " pixels"));
  return {resized(model, asked), std::move(notes), std::move(frozen)};
}

}  // namespace

models::SamConfig segment_config(const VisionTransformerConfig& vit, const SegmentRecipe& recipe) {
  if (const std::string parts = unsupported_parts(vit); !parts.empty()) {
    throw Error("model", "a plain Vision Transformer for the image encoder", parts);
  }
  const int64_t patch = vit.patch_size[0], size = recipe.image_size > 0 ? recipe.image_size : vit.img_size[0];
  if (size % patch != 0) {
    throw Error("segment.image_size", str("a multiple of the patch size ", patch), str(size));
  }
  models::SamConfig config;
  config.encoder = {
      .grid = size / patch,
      .patch_size = patch,
      .dim = vit.embed_dim,
      .num_heads = vit.num_heads,
      .head_dim = vit.head_dim.value_or(vit.embed_dim / vit.num_heads),
      .mlp_hidden = vit.mlp_hidden.value_or(static_cast<int64_t>(static_cast<double>(vit.embed_dim) * vit.mlp_ratio)),
      .qkv_bias = vit.qkv_bias,
      .out_chans = recipe.decoder_dim};
  const int64_t grid = config.encoder.grid;
  if (recipe.window >= grid) {
    throw Error("segment.window", str("a window smaller than the grid of ", grid, " patches, or 0"),
                str(recipe.window));
  }
  for (int64_t i = 0; i < vit.depth; ++i) {
    const bool windowed = recipe.window > 0 && (i + 1) % recipe.global_every != 0;
    config.encoder.blocks.push_back({windowed ? recipe.window : 0, 2 * (windowed ? recipe.window : grid) - 1});
  }
  config.decoder = decoder_config(recipe, recipe.decoder_dim);
  return config;
}

PreparedSam prepare_sam(const Recipe& recipe) {
  std::vector<std::string> frozen = frozen_of(recipe);
  RandomParams random(recipe.seed);
  if (recipe.model.init.empty()) {
    return {models::Sam(segment_config(architecture_of(recipe.model), segment_of(recipe)), ParamSource(random)),
            {},
            std::move(frozen)};
  }
  const models::ModelFiles files(recipe.model.init);
  if (models::is_segment_anything(files)) {
    refuse_adapter(recipe.model, "Segment Anything");
    return fine_tuned(recipe, files, std::move(frozen));
  }
  const models::OpenedModel opened = open_source(recipe.model, files);
  const models::VisionTransformer source = models::build_model(opened);
  const models::SamConfig config = segment_config(opened.config.vit, segment_of(recipe));
  models::Sam model(config, ParamSource(random));
  EncoderTransfer transfer(source, opened.config.preprocessing);
  for (const nn::NamedTensor& parameter : model.named_parameters()) transfer.initialize(parameter);
  transfer.fold_normalisation(model);
  transfer.notes.push_back("neck, prompt encoder and mask decoder: new");
  return {std::move(model), std::move(transfer.notes), std::move(frozen)};
}

}  // namespace vitrail::train
