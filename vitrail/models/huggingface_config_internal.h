// SPDX-License-Identifier: Apache-2.0
#pragma once
// Hugging Face transformers' config.json: the readers of the model types, and the fields that many of them have.
#include "vitrail/models/json_fields_internal.h"
#include "vitrail/models/model_config.h"

namespace vitrail::models {

// Each reads the model of one or more types into `config`, whose architecture is the model_type.  Absent fields have
// the defaults of transformers' configuration class.  Types beside the family's own: data2vec-vision (BEiT), MetaCLIP 2
// (CLIP), TIPSv2 (DINOv2), fixed-size SigLIP 2 (SigLIP), ViT-MAE, MSN, I-JEPA and DeiT (ViT).
void read_aimv2_config(const JsonFields& file, ModelConfig& config);
void read_beit_config(const JsonFields& file, ModelConfig& config);
void read_clip_config(const JsonFields& file, ModelConfig& config);
void read_dinov2_config(const JsonFields& file, ModelConfig& config);
void read_dinov3_config(const JsonFields& file, ModelConfig& config);
void read_internvl_config(const JsonFields& file, ModelConfig& config);
void read_siglip_config(const JsonFields& file, ModelConfig& config);
void read_vit_config(const JsonFields& file, ModelConfig& config);

// The defaults of a configuration class.
struct EncoderDefaults {
  int64_t patch_size = 16, hidden_size = 768, num_hidden_layers = 12, num_attention_heads = 12;
  int64_t intermediate_size = 3072;  // 0: the class has no such field
  double norm_eps = 1e-6;            // layer_norm_eps
  const char* hidden_act = "gelu";   // null: the class has another activation field
};

// The fields of an encoder: sizes, epsilon, activation and dropout.  Positions are interpolated as transformers does.
void read_encoder(const JsonFields& file, const EncoderDefaults& defaults, VisionTransformerConfig& vit);

// vision_config of a dual model; the file itself if the image tower is alone.
JsonFields vision_fields(const JsonFields& file);

// The class names and their number: id2label {"0": "tench", …} or num_labels.
void read_classes(const JsonFields& file, ModelConfig& config);

// The same, as names: transformers calls classes without one LABEL_0, LABEL_1, …
std::vector<std::string> class_names_of(const JsonFields& file);

// Whether a name in "architectures" ends so: "ForImageClassification".
bool architecture_ends_with(const JsonFields& file, const std::string& ending);

kernels::Activation read_hidden_act(const JsonFields& file, const char* by_default);

// The text_config of a dual model.
TextTransformerConfig read_clip_text(const JsonFields& file, int64_t projection_dim);
TextTransformerConfig read_siglip_text(const JsonFields& file);

}  // namespace vitrail::models
