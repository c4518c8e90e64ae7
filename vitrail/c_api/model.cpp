// SPDX-License-Identifier: Apache-2.0
#include "vitrail/c_api/handles_internal.h"
#include "vitrail/models/sam/sam.h"

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

int64_t num_classes(const models::ModelConfig& config) {
  return config.vit.projection_head ? 0 : config.vit.num_classes;
}

// Images of Segment Anything are prepared in one way.
void check_segmenter_options(const vitrail_model_options& options, const ModelOptions& chosen) {
  if (options.labels || options.config || options.tokenizer || chosen.load.image_size) {
    throw Error("vitrail_model_options", "threads and precision alone, for Segment Anything", "others");
  }
}

std::unique_ptr<vitrail_model> segmenter(const char* path, const ModelOptions& chosen, int threads) {
  auto model = std::make_unique<vitrail_model>();
  const kernels::Precision precision = chosen.precision.value_or(kernels::Precision::fp32);
  model->segmenter.emplace(path, sam::PredictorOptions{.threads = threads, .precision = precision});
  model->path = path;
  model->config = str("{\"architecture\": \"sam\", \"image_size\": ", model->segmenter->image_size(),
                      ", \"mask_size\": ", model->segmenter->mask_size(), "}");
  return model;
}

vitrail_model* open(const char* path, const vitrail_model_options& options) {
  const ModelOptions chosen = model_options(options);
  if (models::is_segment_anything(path)) {
    check_segmenter_options(options, chosen);
    return segmenter(path, chosen, options.threads).release();
  }
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

const vitrail::Model& vitrail_model::images() const {
  if (dual) return dual->images();
  if (image_model) return *image_model;
  throw vitrail::Error(path, "a Vision Transformer", "Segment Anything, which vitrail_segment is for");
}

const vitrail::sam::Predictor& vitrail_model::predictor() const {
  if (segmenter) return *segmenter;
  throw vitrail::Error(path, "a checkpoint of Segment Anything", "another model");
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
int vitrail_model_has_text(const vitrail_model* model) { return model->dual ? 1 : 0; }

}  // extern "C"
