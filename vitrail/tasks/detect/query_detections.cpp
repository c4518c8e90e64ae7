// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/detect/query_detections.h"

#include "vitrail/sam/image_mask.h"

namespace vitrail::tasks {
namespace {

class QueryTensors : public Request {
 public:
  QueryTensors(int64_t queries, int64_t classes, int64_t mask_side)
      : queries_(queries), classes_(classes), mask_side_(mask_side) {}

  void compute(Item& item, const ImageEncoding* encoding, const ProgressCallback& /*progress*/) const override {
    const auto& found = static_cast<const QueryEncoding&>(*encoding);
    item.results = {{found.logits, found.boxes}};
    if (mask_side_ > 0) item.results[0].push_back(found.masks);
  }
  std::vector<Output> outputs() const override {
    std::vector<Output> outputs{{"logits", {queries_, classes_}}, {"pred_boxes", {queries_, 4}}};
    if (mask_side_ > 0) outputs.push_back({"pred_masks", {queries_, mask_side_, mask_side_}});
    return outputs;
  }
  Tensor array(const Item& item, size_t output) const override { return item.results[0][output]; }
  std::string json(const Item& item) const override {
    return failure_json(item.name, "logits and pred_boxes are arrays");
  }

 private:
  int64_t queries_, classes_, mask_side_;
};

}  // namespace

size_t QueryEncoding::bytes() const {
  const int64_t values = logits.numel() + boxes.numel() + (masks.defined() ? masks.numel() : 0);
  return static_cast<size_t>(values) * sizeof(float);
}

std::shared_ptr<QueryEncoding> query_encoding(const image::ImageView& photo, const infer::NamedTensors& outputs) {
  auto encoding = std::make_shared<QueryEncoding>();
  encoding->width = photo.width();
  encoding->height = photo.height();
  encoding->logits = outputs[0].tensor.squeeze(0);
  encoding->boxes = outputs[1].tensor.squeeze(0);
  require_finite("logits", encoding->logits);
  require_finite("pred_boxes", encoding->boxes);
  if (outputs.size() > 2) encoding->masks = outputs[2].tensor.squeeze(0);
  return encoding;
}

std::array<float, 4> corners_of(const QueryEncoding& encoding, int64_t query) {
  const auto width = static_cast<float>(encoding.width), height = static_cast<float>(encoding.height);
  const float* const box = encoding.boxes.data<float>() + query * 4;
  return {(box[0] - box[2] / 2) * width, (box[1] - box[3] / 2) * height, (box[0] + box[2] / 2) * width,
          (box[1] + box[3] / 2) * height};
}

sam::Rle mask_of(const QueryEncoding& encoding, int64_t query) {
  return sam::encode(sam::image_mask(encoding.masks.select(0, query), encoding.width, encoding.height));
}

std::unique_ptr<Request> query_tensors(int64_t queries, int64_t classes, int64_t mask_side) {
  return std::make_unique<QueryTensors>(queries, classes, mask_side);
}

}  // namespace vitrail::tasks
