// SPDX-License-Identifier: Apache-2.0
#pragma once
// Readers of the formats of config.json.  All throw Error naming the field's path.
#include "vitrail/models/json_fields_internal.h"
#include "vitrail/models/model_config.h"

namespace vitrail::models {

// timm's format and the "vit" form.  Requires the field "architecture".  family_args: see parse_model_config().
ModelConfig read_timm_config(const Json& json, const std::string& where, const std::string& family_args = "");
// The configuration of a registered architecture.  Throws Error naming `where` and similar names if there is none.
const VisionTransformerConfig& registered_config(const std::string& architecture, const std::string& where);
// Hugging Face transformers' format.  Requires the field "model_type"; `preprocessor` is null if there is no
// preprocessor_config.json.
ModelConfig read_huggingface_config(const Json& json, const Json& preprocessor, const std::string& where);
// AIMv2's image towers: a nested vision_config unless the tower is alone.
bool is_aimv2(const std::string& model_type);
ModelConfig read_aimv2_config(const Json& json, const Json& preprocessor, const std::string& where);
// BEiT's and data2vec-vision's.
bool is_beit(const std::string& model_type);
ModelConfig read_beit_config(const Json& json, const Json& preprocessor, const std::string& where);
// SigLIP's and fixed-size SigLIP 2's: a nested vision_config unless the image tower is alone.
bool is_siglip(const std::string& model_type);
ModelConfig read_siglip_config(const Json& json, const Json& preprocessor, const std::string& where);
// CLIP's: a nested vision_config, and text_config if the model has a text tower.
bool is_clip(const std::string& model_type);
ModelConfig read_clip_config(const Json& json, const Json& preprocessor, const std::string& where);

// OpenCLIP's open_clip_config.json: model_cfg with vision_cfg and text_cfg, and preprocess_cfg.
bool is_open_clip(const JsonFields& file);
ModelConfig read_open_clip_config(const Json& json, const std::string& where);

// The text_config of a dual model.
TextTransformerConfig read_clip_text(const JsonFields& file, int64_t projection_dim);
TextTransformerConfig read_siglip_text(const JsonFields& file);

// DINOv3's.  resizes_floats(): whether a preprocessor_config.json names DINOv3's processor, which rounds no resized
// pixel.
bool resizes_floats(const JsonFields& preprocessor);
bool is_dinov3(const std::string& model_type);
ModelConfig read_dinov3_config(const Json& json, const Json& preprocessor, const std::string& where);

// Parts of Hugging Face's format.  read_labels(): id2label {"0": "tench", …} in index order.
kernels::Activation read_hidden_act(const JsonFields& file, const char* by_default);
bool architecture_ends_with(const JsonFields& file, const std::string& ending);
std::vector<std::string> read_labels(const JsonFields& file);

// preprocessor_config.json.
Preprocessing read_preprocessor(const Json& json, const VisionTransformerConfig& vit, const std::string& where);

}  // namespace vitrail::models
