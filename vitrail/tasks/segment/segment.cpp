// SPDX-License-Identifier: Apache-2.0
// The masks of a prompt or of everything, as `vitrail segment --format json`, or over the image.
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/sam/segment_masks_internal.h"
#include "vitrail/tasks/segment/segment_model.h"
#include "vitrail/tasks/segment/segment_request_internal.h"
#include "vitrail/tasks/table_internal.h"

namespace vitrail::tasks {
namespace {

using Masks = std::vector<sam::SegmentMask>;

class Segment : public Request {
 public:
  Segment(const SegmentModel& model, RequestOptions& options, const Setting& setting)
      : predictor_(model.predictor()),
        request_(take_segment_request(options, setting.max_pixels)),
        render_(setting.render) {
    options.number("opacity", opacity_, {0, 1});
  }

  bool keeps_photo() const override { return render_ || request_.everything; }
  bool is_long() const override { return request_.everything.has_value(); }

  void compute(Item& item, const ImageEncoding* encoding, const ProgressCallback& progress) const override {
    const sam::ImageEmbedding& embedding = static_cast<const SegmentEncoding*>(encoding)->embedding;
    item.value = request_.everything ? everything(item.photo, embedding, progress) : masks_of_prompt(embedding);
  }

  std::string json(const Item& item) const override {
    const auto& masks = std::any_cast<const Masks&>(item.value);
    return pipeline::json_line(request_.everything ? sam::everything_json(item.name, masks)
                                                   : sam::prompt_json(item.name, 0, masks));
  }

  std::string failure_json(const std::string& name, const std::string& error) const override {
    if (request_.everything) return pipeline::json_line({{"image", name}, {"error", error}});
    return pipeline::json_line({{"image", name}, {"prompt", 0}, {"error", error}});
  }

  image::Image render(const Item& item) const override {
    return sam::best_masks_overlay(item.photo, std::any_cast<const Masks&>(item.value), opacity_);
  }

 private:
  Masks masks_of_prompt(const sam::ImageEmbedding& embedding) const {
    const sam::Prompt prompt = resolved_prompt(request_, embedding.width, embedding.height, predictor_.mask_size());
    return masks_of(predictor_, predictor_.predict(embedding, prompt), prompt, embedding.width, embedding.height);
  }

  Masks everything(const image::Image& photo, const sam::ImageEmbedding& embedding,
                   const ProgressCallback& progress) const {
    sam::AutomaticOptions automatic = *request_.everything;
    automatic.progress = progress;
    Masks masks;
    for (const sam::AutomaticMask& mask : sam::automatic_masks(predictor_, embedding, photo, automatic))
      masks.push_back(mask_of(mask));
    return masks;
  }

  const sam::Predictor& predictor_;
  SegmentRequest request_;
  bool render_;
  double opacity_ = 0.5;
};

}  // namespace

Task segment_task() {
  return {.name = "segment",
          .model = kSegmenters,
          .can_render = true,
          .fits = is_model<SegmentModel>,
          .request = [](const LoadedModel& model, RequestOptions& options,
                        const Setting& setting) -> std::unique_ptr<Request> {
            return std::make_unique<Segment>(as_model<SegmentModel>(model), options, setting);
          }};
}

}  // namespace vitrail::tasks
