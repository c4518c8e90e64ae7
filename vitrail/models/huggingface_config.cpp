// SPDX-License-Identifier: Apache-2.0
// Hugging Face transformers' config.json.  The readers of the families have files of their own.
#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/models/config_formats_internal.h"
#include "vitrail/models/huggingface_config_internal.h"
#include "vitrail/models/unsupported_families_internal.h"

namespace vitrail::models {
namespace {

struct Reader {
  const char* model_type;
  void (*read)(const JsonFields& file, ModelConfig& config);
};

constexpr Reader kReaders[] = {{"vit", read_vit_config},
                               {"vit_mae", read_vit_config},
                               {"vit_msn", read_vit_config},
                               {"ijepa", read_vit_config},
                               {"deit", read_vit_config},
                               {"dinov2", read_dinov2_config},
                               {"dinov2_with_registers", read_dinov2_config},
                               {"dinov3_vit", read_dinov3_config},
                               {"clip", read_clip_config},
                               {"clip_vision_model", read_clip_config},
                               {"metaclip_2", read_clip_config},
                               {"metaclip_2_vision_model", read_clip_config},
                               {"siglip", read_siglip_config},
                               {"siglip_vision_model", read_siglip_config},
                               {"beit", read_beit_config},
                               {"data2vec-vision", read_beit_config},
                               {"internvl_vision", read_internvl_config},
                               {"tipsv2_vision_model", read_dinov2_config},
                               {"aimv2", read_aimv2_config},
                               {"aimv2_vision_model", read_aimv2_config}};

std::string supported_types() { return join(kReaders, ", ", &Reader::model_type); }

}  // namespace

ModelConfig read_huggingface_config(const Json& json, const Json& preprocessor, const std::string& where,
                                    const std::string& preprocessor_where) {
  const JsonFields file(json, where);
  ModelConfig config;
  config.architecture = *file.text("model_type");
  const auto* reader = std::ranges::find(kReaders, config.architecture, &Reader::model_type);
  if (reader == std::end(kReaders)) {
    refuse_unsupported_family(config.architecture, file.path("model_type"));
    throw Error(file.path("model_type"), "one of " + supported_types(), "\"" + config.architecture + "\"");
  }
  reader->read(file, config);
  if (!preprocessor.is_null()) {
    config.preprocessing = read_preprocessor(preprocessor, file, config.vit, preprocessor_where);
  }
  return config;
}

}  // namespace vitrail::models
