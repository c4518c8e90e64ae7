// SPDX-License-Identifier: Apache-2.0
#pragma once
// CLIPSeg (Lüddecke & Ecker 2022, "Image Segmentation Using Text and Image Prompts"): a decoder on the frozen towers of
// CLIP.  It reads tokens of several blocks of the image tower, and is conditioned on the embedding of a text.
#include <optional>
#include <vector>

#include "vitrail/models/configured_files.h"
#include "vitrail/models/load.h"
#include "vitrail/nn/block.h"
#include "vitrail/nn/convolution.h"

namespace vitrail::models {

struct ClipSegConfig {
  std::vector<int64_t> layers{3, 6, 9};  // indices of the blocks whose tokens the decoder reads, the last one first
  int64_t vision_dim = 768, text_dim = 512, patch_size = 16;
  int64_t dim = 64, num_heads = 4, mlp_hidden = 2048;  // the decoder's
  double norm_eps = 1e-5;
  int64_t conditional_layer = 0;  // the text is applied in front of this layer of the decoder
  bool refined = false;           // a 3×3 convolution and two transposed ones instead of one
};

// From the tokens of an image and a text to logits.  Parameters have transformers' names, blocks those of timm.
class ClipSegDecoder : public nn::Module {
 public:
  ClipSegDecoder(const ClipSegConfig& config, const ParamSource& params);
  // tokens: of config.layers, the class token first, [B, layers, 1 + n·n, vision_dim]; text [B, text_dim] → logits
  // [B, patch·n, patch·n].
  Tensor forward(const Tensor& tokens, const Tensor& text) const;
  std::string type() const override { return "CLIPSegDecoder"; }
  void visit(nn::Visitor& visitor) override;

 private:
  Tensor enlarged(const Tensor& map) const;

  ClipSegConfig config_;
  nn::Linear film_mul_, film_add_;
  nn::ModuleList<nn::Linear> reduces_;
  nn::ModuleList<nn::Block> layers_;
  std::optional<nn::Conv2d> convolution_;
  std::optional<nn::ConvTranspose2d> middle_;
  nn::ConvTranspose2d last_;
};

// The image tower with the decoder.  Parameters: vision.* with timm's names, decoder.*
class ClipSegNetwork : public nn::Module {
 public:
  ClipSegNetwork(const ClipSegConfig& config, const VisionTransformerConfig& vision, const ParamSource& params);
  // images [B, C, S, S], text [B, text_dim] → logits [B, S, S].
  Tensor forward(const Tensor& images, const Tensor& text) const;
  std::string type() const override { return "CLIPSeg"; }
  void visit(nn::Visitor& visitor) override;

 private:
  std::vector<int64_t> layers_;
  VisionTransformer vision_;
  ClipSegDecoder decoder_;
};

// Probabilities [height, width]: the sigmoid of logits [h, w], which are interpolated bilinearly.
Tensor clipseg_probabilities(const Tensor& logits, int64_t height, int64_t width);

// The key map is that of ClipSegNetwork.
struct ClipSegFiles : ConfiguredFiles<ClipSegConfig> {
  OpenedModel towers;  // CLIP, as a dual model; the image tower takes images of its preprocessing's size
};

// Whether weights have the tensors of CLIPSeg.
bool is_clipseg(const ModelFiles& files);

// Opens a folder of transformers' CLIPSegForImageSegmentation.
ClipSegFiles open_clipseg(const ModelFiles& files);

// In eval mode with f32 weights.  Both throw one Error that lists all missing, extra and misshapen keys.
ClipSegDecoder build_clipseg_decoder(const ClipSegFiles& files);
ClipSegNetwork build_clipseg_network(const ClipSegFiles& files);

}  // namespace vitrail::models
