// SPDX-License-Identifier: Apache-2.0
// The masks of texts: the pixels that each of them describes.
#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/image/overlay.h"
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/sam/mask_overlay.h"
#include "vitrail/sam/segment_masks_internal.h"
#include "vitrail/tasks/clipseg/clipseg_model.h"
#include "vitrail/tasks/images/tensor_json_internal.h"
#include "vitrail/tasks/table_internal.h"

namespace vitrail::tasks {
namespace {

struct ClipSegOptions {
  std::vector<std::string> texts;
  double threshold = 0.5, opacity = 0.5;
  bool heat = false, rle = false, raw = false;
};

// Names that label maps have too mean the same.
void describe_clipseg(Fields& fields, ClipSegOptions& options) {
  fields.texts({"text", "CLIPSeg: what a mask is of, such as \"a cat\"; each of several has a mask"}, options.texts);
  fields.number({"threshold", "CLIPSeg: probability above which a pixel is in the mask"}, options.threshold, {0, 1});
  fields.boolean({"heat", "CLIPSeg: the rendered image has the probabilities of each text side by side"}, options.heat);
  fields.number({"opacity", "Opacity of the overlay's colours"}, options.opacity, {0, 1});
  fields.boolean({"rle", "Add the mask of each segment to the JSON, in COCO's run-length encoding"}, options.rle);
  fields.boolean({"raw", "CLIPSeg: add all probabilities to the JSON, row by row"}, options.raw);
}

struct TextMasks {
  int64_t height = 0, width = 0;  // the image's size
  std::vector<Tensor> logits;     // one for each text, at the size of the model's input
  std::vector<float> largest;     // probabilities
  std::vector<sam::SegmentMask> masks;

  Tensor probabilities(size_t text) const { return models::clipseg_probabilities(logits[text], height, width); }
};

std::span<const float> values_in(const Tensor& map) { return {map.data<float>(), static_cast<size_t>(map.numel())}; }

class TextSegment : public Request {
 public:
  TextSegment(const ClipSegModel& model, RequestOptions& options, const Setting& setting)
      : model_(model), render_(setting.render) {
    describe_clipseg(options, options_);
    if (options_.texts.empty()) throw Error("text", "what a mask is of, such as \"a cat\"", "none");
  }

  int64_t texts() const override { return std::ssize(options_.texts); }
  void prepare(const ProgressCallback& progress) override { embeddings_ = model_.embed(options_.texts, progress); }
  bool keeps_photo() const override { return render_; }
  bool is_long() const override { return texts() > 1; }

  void compute(Item& item, const ImageEncoding* encoding, const ProgressCallback& progress) const override {
    TextMasks result{encoding->height, encoding->width, {}, {}, {}};
    if (options_.raw) check_result_size(texts(), result.height * result.width);
    if (render_ && options_.heat) check_result_size(texts(), result.height * result.width, kMaxHeatPixels);
    for (int64_t i = 0; i < texts(); ++i) {
      result.logits.push_back(model_.logits(*encoding, embeddings_.narrow(0, i, 1)));
      const Tensor map = result.probabilities(static_cast<size_t>(i));
      require_finite("probabilities", map);
      result.largest.push_back(std::ranges::max(values_in(map)));
      const sam::BinaryMask mask = sam::threshold(map, static_cast<float>(options_.threshold));
      result.masks.push_back({.rle = sam::encode(mask), .box = sam::bounding_box(mask)});
      if (progress) progress(i + 1, texts());
    }
    item.value = std::move(result);
  }

  std::string json(const Item& item) const override {
    const TextMasks& result = of(item);
    nlohmann::ordered_json object{
        {"path", item.name}, {"shape", {result.height, result.width}}, {"texts", nlohmann::ordered_json::array()}};
    for (size_t i = 0; i < options_.texts.size(); ++i) {
      const sam::SegmentMask& mask = result.masks[i];
      nlohmann::ordered_json text{{"text", options_.texts[i]},
                                  {"max", result.largest[i]},
                                  {"area", sam::area(mask.rle)},
                                  {"bbox", sam::coco_box(mask)}};
      if (options_.rle) text["rle"] = sam::rle_json(mask.rle);
      if (options_.raw) text["probabilities"] = values_of(result.probabilities(i));
      object["texts"].push_back(std::move(text));
    }
    return pipeline::json_line(object);
  }

  std::vector<Output> outputs() const override { return {{"probabilities", {}}}; }
  Tensor array(const Item& item, size_t /*output*/) const override {
    const TextMasks& result = of(item);
    const Tensor maps = Tensor::empty({texts(), result.height, result.width});
    float* to = maps.data<float>();
    for (size_t i = 0; i < options_.texts.size(); ++i)
      to = std::ranges::copy(values_in(result.probabilities(i)), to).out;
    return maps;
  }

  image::Image render(const Item& item) const override {
    const TextMasks& result = of(item);
    if (!options_.heat) return sam::best_masks_overlay(item.photo, result.masks, options_.opacity);
    std::vector<image::Image> maps;
    for (size_t i = 0; i < options_.texts.size(); ++i) {
      const Tensor map = result.probabilities(i);
      maps.push_back(image::overlay(item.photo, {values_in(map), result.width, result.height},
                                    {.opacity = options_.opacity, .low = 0.0F, .high = 1.0F}));
    }
    return image::grid(maps, texts());
  }

 private:
  static constexpr int64_t kMaxHeatPixels = int64_t{1} << 28;  // 800 MB
  static const TextMasks& of(const Item& item) { return std::any_cast<const TextMasks&>(item.value); }

  const ClipSegModel& model_;
  bool render_;
  ClipSegOptions options_;
  Tensor embeddings_;  // [texts, D]
};

}  // namespace

Task clipseg_task() {
  return {.name = "segment",
          .model = "CLIPSeg",
          .help = "Segment what texts describe",
          .describe = describe_defaults<ClipSegOptions, describe_clipseg>,
          .can_render = true,
          .model_options = false,
          .fits = is_model<ClipSegModel>,
          .request = [](const LoadedModel& model, RequestOptions& options,
                        const Setting& setting) -> std::unique_ptr<Request> {
            return std::make_unique<TextSegment>(as_model<ClipSegModel>(model), options, setting);
          }};
}

}  // namespace vitrail::tasks
