// SPDX-License-Identifier: Apache-2.0
#pragma once
// Models as timm has them: the registered architecture, its arguments, and the names of the tensors.
#include <optional>

#include "vitrail/models/json_fields_internal.h"
#include "vitrail/models/registry.h"
#include "vitrail/models/written_model.h"

namespace vitrail::models {

struct TimmForm {
  const Architecture* architecture = nullptr;
  Json model_args = Json::object();    // timm's arguments that differ from the architecture's
  Json vitrail_args = Json::object();  // fields without an argument, which do not change the parameters
  bool layer_scale_is_gamma = false;   // blocks.N.gamma_1 instead of blocks.N.ls1.gamma
  bool separate_qkv = false;           // q_proj, k_proj and v_proj instead of qkv
  bool separate_gate = false;          // fc1_g and fc1_x instead of fc1
  bool adds_class_position = false;    // cls_token contains its row of pos_embed, which has rows for patches alone

  bool has_native_tensors() const {
    return !layer_scale_is_gamma && !separate_qkv && !separate_gate && !adds_class_position;
  }
};

// The registered architecture that differs from this model in the fewest arguments of timm; none if these cannot
// express the model.
std::optional<TimmForm> timm_form(const VisionTransformerConfig& config, const std::string& own_name);

// The tensors under timm's names.
NamedTensors timm_tensors(const TimmForm& form, const NamedTensors& tensors);

}  // namespace vitrail::models
