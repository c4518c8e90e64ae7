// SPDX-License-Identifier: Apache-2.0
#include "vitrail/c_api/handles_internal.h"
#include "vitrail/models/model_bytes.h"
#include "vitrail/tasks/segment/segment_model.h"

namespace vitrail::c_api {
namespace {

constexpr const char* kBytesName = "model";  // names a model from bytes in errors

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

tasks::OpenOptions open_options(const vitrail_model_options& options) {
  return {.model = model_options(options), .tokenizer = options.tokenizer ? options.tokenizer : ""};
}

models::ModelBytes model_bytes(const vitrail_model_bytes* given) {
  required(given, "bytes");
  const vitrail_model_bytes bytes = options_or(given, VITRAIL_MODEL_BYTES_INIT, "vitrail_model_bytes");
  if (!bytes.weights) throw Error("weights", "a pointer", "NULL");
  const std::span weights(static_cast<const std::byte*>(bytes.weights), bytes.weights_size);
  return {.weights = {.data = weights, .owner = nullptr, .where = kBytesName},
          .config = bytes.config ? bytes.config : "",
          .preprocessor = bytes.preprocessor ? bytes.preprocessor : ""};
}

std::unique_ptr<tasks::LoadedModel> load(const models::ModelBytes& bytes, const tasks::OpenOptions& options) {
  if (models::is_segment_anything(models::open_checkpoint(bytes)))
    return std::make_unique<tasks::SegmentModel>(bytes, options);
  models::OpenedModel opened = models::open_model(bytes, options.model.load);
  if (options.tokenizer.empty()) opened.config.text.reset();  // the model takes images alone
  return std::make_unique<tasks::ImageModel>(opened, options);
}

vitrail_model* new_model(std::unique_ptr<tasks::LoadedModel> loaded, const std::string& path, int threads) {
  auto model = std::make_unique<vitrail_model>();
  model->option_models = {.model = {.threads = threads, .precision = loaded->precision()}};
  model->loaded = std::move(loaded);
  model->path = path;
  model->config = model->loaded->config();
  if (!tasks::is_model<tasks::ImageModel>(*model->loaded) || !model->image_model().classifies()) return model.release();
  for (int64_t i = 0; i < model->images().config().vit.num_classes; ++i)
    model->class_names.push_back(model->images().class_name(i));
  return model.release();
}

}  // namespace
}  // namespace vitrail::c_api

using namespace vitrail::c_api;

const vitrail::tasks::ImageModel& vitrail_model::image_model() const {
  if (vitrail::tasks::is_model<vitrail::tasks::ImageModel>(*loaded))
    return vitrail::tasks::as_model<vitrail::tasks::ImageModel>(*loaded);
  const std::string task = vitrail::tasks::first_task(*loaded).name;
  throw vitrail::Error(path, "a Vision Transformer", loaded->family() + ", which vitrail_" + task + " is for");
}

extern "C" {

vitrail_status* vitrail_model_open(const char* path, const vitrail_model_options* options, vitrail_model** model) {
  return guarded([&] {
    vitrail_model*& result = required(model, "model");
    required(path, "path");
    const auto chosen = options_or(options, VITRAIL_MODEL_OPTIONS_INIT, "vitrail_model_options");
    result = new_model(vitrail::tasks::open_model(path, open_options(chosen)), path, chosen.threads);
  });
}

vitrail_status* vitrail_model_open_bytes(const vitrail_model_bytes* bytes, const vitrail_model_options* options,
                                         vitrail_model** model) {
  return guarded([&] {
    vitrail_model*& result = required(model, "model");
    const auto chosen = options_or(options, VITRAIL_MODEL_OPTIONS_INIT, "vitrail_model_options");
    result = new_model(load(model_bytes(bytes), open_options(chosen)), kBytesName, chosen.threads);
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
  return vitrail::tasks::is_model<vitrail::tasks::ImageModel>(*model->loaded) && model->image_model().dual() ? 1 : 0;
}

}  // extern "C"
