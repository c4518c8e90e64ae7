// SPDX-License-Identifier: Apache-2.0
// transformers' config.json of Depth Anything and DPT.  Absent fields have the defaults of its configuration classes.
#include "vitrail/models/depth/config.h"

#include "vitrail/base/error.h"
#include "vitrail/models/dense/config_internal.h"
#include "vitrail/models/unsupported_families_internal.h"

namespace vitrail::models {
namespace {

const Json& default_backbone() {
  static const Json json{{"model_type", "dinov2"},
                         {"image_size", 518},
                         {"hidden_size", 384},
                         {"num_attention_heads", 6},
                         {"out_indices", {9, 10, 11, 12}}};
  return json;
}

// Relative or metric.
void read_range(const JsonFields& file, DepthConfig& config) {
  const std::string kind = file.text("depth_estimation_type").value_or("relative");
  if (kind != "relative" && kind != "metric")
    throw Error(file.path("depth_estimation_type"), "relative or metric", "\"" + kind.substr(0, 80) + "\"");
  config.metric = kind == "metric";
  if (config.metric && !file.has("max_depth"))
    throw Error(file.path("max_depth"), "the largest depth in metres, which a metric model needs", "none");
  config.max_depth = file.number("max_depth").value_or(1.0);
  if (!(config.max_depth > 0 && config.max_depth <= 1e6))
    throw Error(file.path("max_depth"), "a number above 0, at most 1000000", str(config.max_depth));
}

void read_depth_anything(const JsonFields& file, DepthConfig& config) {
  const Json& backbone = file.has("backbone_config") ? file.at("backbone_config") : default_backbone();
  read_dense_backbone(backbone, file.path("backbone_config"), false, config);
  const int64_t patch = positive_dim(file, "patch_size", 14);
  if (config.backbone.patch_size != std::array{patch, patch})
    throw Error(file.path("patch_size"), str("the backbone's ", config.backbone.patch_size[0]), str(patch));
  config.neck.dim = positive_dim(file, "reassemble_hidden_size", config.neck.dim);
  config.head_dim = positive_dim(file, "head_hidden_size", config.head_dim);
  read_range(file, config);
}

void read_dpt(const JsonFields& file, DepthConfig& config) {
  read_dpt_backbone(file, config, config.neck);
  config.head_doubles = true;
  config.head_projection = file.boolean("add_projection").value_or(false);
}

}  // namespace

DepthConfig read_depth_config(const std::string& text, const std::string& path, const std::string& preprocessor,
                              const std::string& preprocessor_path) {
  const Json json = parse_json(text, path);
  const JsonFields file(json, path);
  DepthConfig config;
  const std::string type = config.architecture = file.text("model_type").value_or("");
  if (type != "depth_anything" && type != "dpt") {
    refuse_unsupported_family(type, file.path("model_type"));
    throw Error(file.path("model_type"), "depth_anything or dpt", "\"" + type.substr(0, 80) + "\"");
  }
  require_defaults(file, {{"head_in_index", -1}});
  type == "dpt" ? read_dpt(file, config) : read_depth_anything(file, config);
  read_dpt_neck(file, config, config.neck);
  read_dpt_processor(preprocessor, preprocessor_path, file, config);
  return config;
}

}  // namespace vitrail::models
