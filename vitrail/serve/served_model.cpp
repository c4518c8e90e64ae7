// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/served_model_internal.h"

#include <atomic>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/models/sam/sam.h"

namespace vitrail::serve {
namespace {

uint64_t next_number() {
  static std::atomic<uint64_t> numbers{0};
  return ++numbers;
}

bool is_segmenter(const std::string& path) {
  try {
    return models::is_segment_anything(path);
  } catch (const Error&) {
    return false;  // opening it says what is wrong
  }
}

}  // namespace

ServedModel::ServedModel(const ModelSource& source, const ModelOptions& options)
    : name_(source.name), number_(next_number()), precision_(options.precision.value_or(kernels::Precision::fp32)) {
  const MappedFileGroup::Scope opening(files_);
  if (is_segmenter(source.path)) {
    open_segmenter(source, options);
  } else {
    open_images(source, options);
  }
}

bool ServedModel::has_changed_files() const {
  try {
    check_files();
    return false;
  } catch (const Error&) {
    return true;
  }
}

void ServedModel::open_segmenter(const ModelSource& source, const ModelOptions& options) {
  segmenter_ = std::make_unique<sam::Predictor>(
      source.path, sam::PredictorOptions{.threads = options.threads, .precision = precision_});
  const image::Image blank = image::make_image(segmenter_->image_size(), segmenter_->image_size(), 3);
  const sam::ImageEmbedding embedding = segmenter_->embed(blank);
  if (segmenter_->has_decoder()) static_cast<void>(segmenter_->predict(embedding, {.points = {{0, 0, 1}}}));
}

int64_t ServedModel::embedding_dim() const {
  const auto& vit = images().config().vit;
  return vit.projection_head ? vit.num_classes : vit.embed_dim;
}

int64_t ServedModel::image_tokens() const {
  const auto& size = images().config().vit.img_size;
  const models::VisionTransformer& model = images().session().model();
  const auto [rows, columns] = model.grid_of(size[0], size[1]);
  return rows * columns + model.num_prefix_tokens();
}

void ServedModel::open_images(const ModelSource& source, const ModelOptions& options) {
  const models::OpenedModel opened = models::open_model(source.path, options.load);
  if (opened.config.text) {
    try {
      dual_ = std::make_unique<DualModel>(opened, options);
    } catch (const Error& error) {
      warn(name_ + " serves images only: " + error.what());
    }
  }
  if (!dual_) images_ = std::make_unique<Model>(opened, options);
  precision_ = images().session().precision();
  const auto& vit = images().config().vit;
  const Tensor blank = Tensor::zeros({1, vit.in_chans, vit.img_size[0], vit.img_size[1]});
  static_cast<void>(images().session().run(blank, classifies() ? infer::Request{} : images().request_of({})));
}

}  // namespace vitrail::serve
