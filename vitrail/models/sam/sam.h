// SPDX-License-Identifier: Apache-2.0
#pragma once
// Segment Anything (Kirillov et al. 2023) and SAM 2 on images (Ravi et al. 2024).
#include <filesystem>
#include <memory>
#include <optional>

#include "vitrail/models/model_files.h"
#include "vitrail/models/sam/image_encoder.h"
#include "vitrail/models/sam/mask_decoder.h"
#include "vitrail/models/sam/prompt_encoder.h"
#include "vitrail/weights/checkpoint.h"
#include "vitrail/weights/key_map.h"

namespace vitrail::models {

// What the mask decoder reads of images, the same for all their prompts.
struct SamImage {
  Tensor embedding;              // [B, h, w, C]
  std::vector<Tensor> features;  // As SamMaskDecoder::image_features() gives them.
};

// Parameters have the official names: image_encoder.*, prompt_encoder.*, mask_decoder.*; of SAM 2 no_mem_embed, which
// is added to the embedding.
class Sam : public nn::Module {
 public:
  Sam(const SamConfig& config, const ParamSource& params);
  const SamConfig& config() const { return config_; }
  const SamEncoder& image_encoder() const { return *image_encoder_; }
  // Throw Error for an image encoder alone (config().has_decoder).
  const SamPromptEncoder& prompt_encoder() const;
  const SamMaskDecoder& mask_decoder() const;
  SamImage encode(const Tensor& images) const;  // images: normalised, [B, 3, S, S]
  // The linear layers and convolutions of encode() that are no block's, as paths in this module.
  std::vector<std::string> outer_layers() const;
  std::vector<SamFeature> features() const;  // SamMaskDecoder::features(); none for an image encoder alone
  const SamHqHead* hq_head() const { return mask_decoder_ ? mask_decoder_->hq_head() : nullptr; }
  std::string type() const override { return "Sam"; }
  void visit(nn::Visitor& visitor) override;

 private:
  SamConfig config_;
  std::unique_ptr<SamEncoder> image_encoder_;
  Tensor no_memory_;  // [1, 1, C]: stands for the memory of a video's earlier frames
  std::optional<SamPromptEncoder> prompt_encoder_;
  std::optional<SamMaskDecoder> mask_decoder_;
};

struct SamLoadOptions {
  std::optional<SamPreprocessing> preprocessing = {};  // default: that of config.json, else Segment Anything's
};

// Reads a checkpoint of Meta's code, HQ-SAM, MobileSAM or SAM 2 (PyTorch or safetensors), of transformers' SamModel,
// SamHQModel, Sam2Model or Sam2VideoModel, or a folder in hub layout; or the image encoder alone, as timm's samvit. The
// shapes of its tensors are the configuration, for SAM 2 with config.json.  What SAM 2 has for videos is left out.
// f32, in eval mode.  Throws one Error that lists all missing, extra and misshapen keys.
Sam load_sam(const ModelFiles& files, const SamLoadOptions& options = {});

// The key map of such a checkpoint, whose prefixes have been removed.  Other tensors keep their names.
weights::KeyMap sam_key_map(const weights::Checkpoint& checkpoint);

// Whether weights have the mask decoder of Segment Anything, or are those of its image encoder.
bool is_segment_anything(const weights::Checkpoint& checkpoint);
bool is_segment_anything(const ModelFiles& files);

// Identifies what computes the embeddings of a checkpoint, as 64 hexadecimal digits: a digest of these tensors' names,
// types, shapes and values, and of a preprocessing and an ε of layer norms other than Segment Anything's.
std::string sam_encoder_digest(const ModelFiles& files, const SamLoadOptions& options = {});

// Likewise identifies what SamEncoder::trunk() computes: the image encoder without its neck.
std::string sam_trunk_digest(const Sam& sam);

}  // namespace vitrail::models
