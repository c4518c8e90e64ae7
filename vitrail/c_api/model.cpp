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
  if ((options.image_height > 0) != (options.image_width > 0) || options.image_width < 0 || options.image_height < 0) {
    throw Error("image_height, image_width", "both positive, or both 0",
                str(options.image_height, ", ", options.image_width));
  }
  if (options.image_height > 0) result.load.image_size = {{options.image_height, options.image_width}};
  if (options.threads < 0) throw Error("threads", "at least 0", str(options.threads));
  return result;
}

vitrail_model* open(const char* path, const vitrail_model_options& options) {
  auto model = std::make_unique<vitrail_model>();
  model->loaded = tasks::open_model(
      path, {.model = model_options(options), .tokenizer = options.tokenizer ? options.tokenizer : ""});
  model->path = path;
  model->config = model->loaded->config();
  if (!tasks::is_image_model(*model->loaded) || !model->image_model().classifies()) return model.release();
  for (int64_t i = 0; i < model->images().config().vit.num_classes; ++i)
    model->class_names.push_back(model->images().class_name(i));
  return model.release();
}

}  // namespace
}  // namespace vitrail::c_api

using namespace vitrail::c_api;

const vitrail::tasks::ImageModel& vitrail_model::image_model() const {
  if (vitrail::tasks::is_image_model(*loaded)) return vitrail::tasks::image_model(*loaded);
  const std::string task = vitrail::tasks::first_task(*loaded).name;
  throw vitrail::Error(path, "a Vision Transformer", loaded->family() + ", which vitrail_" + task + " is for");
}

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
int vitrail_model_has_text(const vitrail_model* model) {
  return vitrail::tasks::is_image_model(*model->loaded) && model->image_model().dual() ? 1 : 0;
}

}  // extern "C"
