// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/segment/segment_model.h"

#include "vitrail/base/error.h"
#include "vitrail/models/sam/architectures.h"
#include "vitrail/models/sam/sam.h"
#include "vitrail/tasks/model_facts_internal.h"

namespace vitrail::tasks {
namespace {

size_t bytes_of(const Tensor& tensor) {
  return tensor.defined() ? static_cast<size_t>(tensor.numel()) * size_of(tensor.dtype()) : 0;
}

// The embedding alone.
class EmbeddingTensor : public Request {
 public:
  explicit EmbeddingTensor(const SegmentModel& model) : model_(model) {}

  void compute(Item& item, const ImageEncoding* encoding, const ProgressCallback& /*progress*/) const override {
    item.results = {{static_cast<const SegmentEncoding*>(encoding)->embedding.values}};
  }
  std::vector<Output> outputs() const override { return {{"embedding", model_.predictor().embedding_shape()}}; }
  Tensor array(const Item& item, size_t /*output*/) const override { return item.results[0][0]; }
  std::string json(const Item& item) const override { return failure_json(item.name, "an embedding is an array"); }

 private:
  const SegmentModel& model_;
};

}  // namespace

SegmentEncoding::SegmentEncoding(sam::ImageEmbedding of_image) : embedding(std::move(of_image)) {
  width = embedding.width;
  height = embedding.height;
}

size_t SegmentEncoding::bytes() const {
  size_t bytes = bytes_of(embedding.values) + bytes_of(embedding.projections) + bytes_of(embedding.decoder_input);
  for (const Tensor& map : embedding.features) bytes += bytes_of(map);
  return bytes;
}

SegmentModel::SegmentModel(const models::ModelFiles& files, const OpenOptions& options)
    : path_(files.path),
      precision_(require_no_others(options, "Segment Anything").model.precision.value_or(kernels::Precision::fp32)),
      predictor_(files, {.threads = options.model.threads, .precision = precision_}) {}

SegmentModel::SegmentModel(const models::ModelBytes& bytes, const OpenOptions& options)
    : precision_(require_no_others(options, "Segment Anything").model.precision.value_or(kernels::Precision::fp32)),
      predictor_(models::load_sam(bytes), {.threads = options.model.threads, .precision = precision_},
                 bytes.weights.where) {}

SegmentModel::~SegmentModel() = default;

const models::Sam& SegmentModel::with_weights() const {
  const std::lock_guard lock(mutex_);
  if (path_.empty()) throw Error("model", "one from files, whose weights can be read again", "one from bytes");
  if (!with_weights_) with_weights_ = std::make_unique<models::Sam>(models::load_sam(path_));
  return *with_weights_;
}

std::string SegmentModel::config() const {
  return str("{\"architecture\": \"sam\", \"image_size\": ", predictor_.image_size(),
             ", \"mask_size\": ", predictor_.mask_size(), "}");
}

std::string SegmentModel::facts() const {
  const int64_t side = predictor_.image_size();
  return facts_json({.architecture = "sam", .image_size = {side, side}, .segments = true, .precision = precision_});
}

std::unique_ptr<Request> SegmentModel::tensors() const { return std::make_unique<EmbeddingTensor>(*this); }

void SegmentModel::warm_up() const {
  const image::Image blank = image::make_image(predictor_.image_size(), predictor_.image_size(), 3);
  const sam::ImageEmbedding embedding = predictor_.embed(blank);
  if (predictor_.has_decoder()) static_cast<void>(predictor_.predict(embedding, {.points = {{0, 0, 1}}}));
}

std::shared_ptr<const ImageEncoding> SegmentModel::encode(const image::ImageView& photo) const {
  return std::make_shared<SegmentEncoding>(predictor_.embed(photo));
}

Family segment_family() {
  return {.name = "segment_anything",
          .has_architecture = [](const std::string& name) { return models::find_sam_architecture(name) != nullptr; },
          .recognises = [](const models::ModelFiles& files) { return models::is_segment_anything(files.first); },
          .load = load_as<SegmentModel>};
}

}  // namespace vitrail::tasks
