// SPDX-License-Identifier: Apache-2.0
#pragma once
// Readers of the formats of config.json.  All throw Error naming the field's path.
#include <filesystem>
#include <optional>

#include "vitrail/base/embedded_file_internal.h"
#include "vitrail/models/json_fields_internal.h"
#include "vitrail/models/model_config.h"

namespace vitrail::models {

// timm's format and the "vit" form.  Requires the field "architecture".  family_args: see parse_model_config().
ModelConfig read_timm_config(const Json& json, const std::string& where, const std::string& family_args = "");
// The configuration of a registered architecture.  Throws Error naming `where` and similar names if there is none.
const VisionTransformerConfig& registered_config(const std::string& architecture, const std::string& where);

// "int8" of vitrail's own files.
std::optional<Int8Config> int8_config(const JsonFields& fields);

// Hugging Face transformers' format.  Requires the field "model_type"; `preprocessor` is null if there is no
// preprocessor_config.json, which `preprocessor_where` names in errors.
ModelConfig read_huggingface_config(const Json& json, const Json& preprocessor, const std::string& where,
                                    const std::string& preprocessor_where);

// OpenCLIP's open_clip_config.json: model_cfg with vision_cfg and text_cfg, and preprocess_cfg.  Or a file of its
// model_configs/, which is a model_cfg alone.
bool is_open_clip(const JsonFields& file);
ModelConfig read_open_clip_config(const Json& json, const std::string& where);
// open_clip_models.json: OpenCLIP's model_configs/, by their names.
std::span<const EmbeddedFile> open_clip_models();
// The model_cfg of one of OpenCLIP's names, such as "ViT-B-32".
std::optional<std::string> open_clip_model(const std::string& name);

// preprocessor_config.json of a folder, or its form in the processor_config.json of transformers 5, which comes first
// there too.  Empty without either.
struct PreprocessorFile {
  std::string text, path;
};
PreprocessorFile preprocessor_file(const std::filesystem::path& folder);
// The processor's class, whose defaults absent fields have, is named by the file, or else by config.json (`model`) or
// by its model_type, as for transformers' AutoImageProcessor.  Without a class nothing is assumed: an absent resample
// leaves the interpolation unset.  null for do_resize, do_center_crop, do_rescale and do_normalize means false.
Preprocessing read_preprocessor(const Json& json, const JsonFields& model, const VisionTransformerConfig& vit,
                                const std::string& where);

}  // namespace vitrail::models
