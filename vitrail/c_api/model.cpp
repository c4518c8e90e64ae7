// SPDX-License-Identifier: Apache-2.0
#include "vitrail/c_api/handles_internal.h"

namespace vitrail::c_api {
namespace {

ModelOptions model_options(const vitrail_model_options& options) {
  ModelOptions result;
  result.threads = options.threads;
  if (options.precision) result.precision = kernels::precision_from_name(options.precision);
  if (options.labels) result.labels = options.labels;
  if (options.config) result.load.config = options.config;
  if ((options.image_height > 0) != (options.image_width > 0) || options.image_height < 0) {
    throw Error("image_height, image_width", "both positive, or both 0",
                str(options.image_height, ", ", options.image_width));
  }
  if (options.image_height > 0) result.load.image_size = {{options.image_height, options.image_width}};
  if (options.threads < 0) throw Error("threads", "at least 0", str(options.threads));
  return result;
}

int64_t num_classes(const models::ModelConfig& config) {
  return config.vit.projection_head ? 0 : config.vit.num_classes;
}

vitrail_model* open(const char* path, const vitrail_model_options& options) {
  const ModelOptions chosen = model_options(options);
  const models::OpenedModel opened = models::open_model(path, chosen.load);
  auto model = std::make_unique<vitrail_model>();
  if (opened.config.text) {
    model->dual.emplace(opened, chosen, options.tokenizer ? options.tokenizer : "");
  } else {
    model->image_model.emplace(opened, chosen);
  }
  model->path = path;
  model->config = models::write_model_config(model->images().config());
  for (int64_t i = 0; i < num_classes(opened.config); ++i) {
    model->class_names.push_back(model->images().class_name(i));
  }
  return model.release();
}

}  // namespace
}  // namespace vitrail::c_api

using namespace vitrail::c_api;

extern "C" {

vitrail_status* vitrail_model_open(const char* path, const vitrail_model_options* options, vitrail_model** model) {
  return guarded([&] {
    vitrail_model*& result = required(model, "model");
    result = open(&required(path, "path"), options_or(options, VITRAIL_MODEL_OPTIONS_INIT, "vitrail_model_options"));
  });
}

void vitrail_model_free(vitrail_model* model) { delete model; }
const char* vitrail_model_config(const vitrail_model* model) { return model->config.c_str(); }
int64_t vitrail_model_num_classes(const vitrail_model* model) { return std::ssize(model->class_names); }
const char* vitrail_model_class_name(const vitrail_model* model, int64_t index) {
  if (index < 0 || index >= std::ssize(model->class_names)) return nullptr;
  return model->class_names[static_cast<size_t>(index)].c_str();
}
int vitrail_model_has_text(const vitrail_model* model) { return model->dual ? 1 : 0; }

}  // extern "C"
