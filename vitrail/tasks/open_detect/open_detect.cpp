// SPDX-License-Identifier: Apache-2.0
// The objects of an image that labels name, or that are like one in an example.
#include <algorithm>
#include <mutex>

#include "vitrail/base/error.h"
#include "vitrail/image/decode.h"
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/sam/prompt_text.h"
#include "vitrail/tasks/detect/detection_files.h"
#include "vitrail/tasks/detect/detection_request.h"
#include "vitrail/tasks/open_detect/open_detection_model.h"
#include "vitrail/tasks/table_internal.h"

namespace vitrail::tasks {
namespace {

constexpr double kOpenThreshold = 0.1;  // post_process_object_detection() of transformers
constexpr double kExampleNms = 0.3;     // its post_process_image_guided_detection()
constexpr const char* kExample = "example";

struct OpenDetectOptions : DetectionOptions {
  std::vector<std::string> labels, templates;
  std::string like_box;
  bool per_label = false;
};

void describe_open_detect(Fields& fields, OpenDetectOptions& options) {
  fields.texts({"labels", "Models of labels: what to find, such as \"cat,remote control\""}, options.labels);
  fields.texts({"template", "Text around each label, with {} in its place; embeddings of several are averaged"},
               options.templates);
  fields.boolean({"per_label", "Each label by itself: a box may have several, not the best one alone"},
                 options.per_label);
  fields.text({"like_box", "With like: the object in the example, X0,Y0,X1,Y1 (default: the object that it shows)"},
              options.like_box);
  describe_detection(fields, options);
}

std::array<float, 4> box_of(const sam::Box& box) {
  return {static_cast<float>(box.x0), static_cast<float>(box.y0), static_cast<float>(box.x1),
          static_cast<float>(box.y1)};
}

class OpenDetect : public DetectionRequest {
 public:
  OpenDetect(const OpenDetectionModel& model, RequestOptions& options, const Setting& setting)
      : DetectionRequest(model, setting, kOpenThreshold),
        model_(model),
        max_pixels_(setting.max_pixels),
        by_example_(setting.input_files.contains("like")) {
    describe_open_detect(options, options_);
    if (options_.labels.size() == 1) options_.labels = pipeline::split_labels(options_.labels.front());
    if (by_example_ && !options_.labels.empty()) throw Error("like", "no labels beside it", "both");
    if (!by_example_ && options_.labels.empty())
      throw Error("labels", "what to find, such as \"cat,remote control\", or an example of it (like)", "none");
    if (by_example_ && !options_.templates.empty()) throw Error("template", "labels beside it", "an example");
    if (by_example_ && options_.per_label) throw Error("per-label", "labels beside it", "an example");
    if (by_example_ && !options_.nms) options_.nms = kExampleNms;
    open_segmenter(setting);
    if (options_.like_box.empty()) return;
    if (!by_example_) throw Error("like-box", "an example (like) beside it", "none");
    like_box_ = sam::parse_box(options_.like_box, "like-box");
  }

  void check(int64_t /*images*/) const override {
    constexpr int64_t kBoxes = 1 << 13;  // those of an image
    constexpr int64_t kValuesOfBox = 6;
    check_result_size(texts(), options_.per_label ? kBoxes * kValuesOfBox : kBoxes);
  }

  int64_t texts() const override {
    return std::ssize(options_.labels) * std::max<int64_t>(1, std::ssize(options_.templates));
  }
  void prepare(const ProgressCallback& progress) override {
    queries_ = model_.embed_labels(options_.labels, options_.templates, progress);
  }

 private:
  const DetectionOptions& options() const override { return options_; }

  Detections found(const Item& item, const ImageEncoding& encoding) const override {
    return by_example_ ? like_example(model_.scores(encoding, example_query(item.input_files.at("like"))))
                       : of_labels(model_.scores(encoding, queries_));
  }

  // The best label of each box, or all of them.
  Detections of_labels(const OpenDetectionModel::Scores& scored) const {
    Detections all;
    const int64_t labels = scored.scores.size(1);
    for (int64_t box = 0; box < scored.scores.size(0); ++box) {
      const float* const of_box = scored.scores.data<float>() + box * labels;
      const int64_t best = std::max_element(of_box, of_box + labels) - of_box;
      for (int64_t label = 0; label < labels; ++label) {
        if (of_box[label] > found_above() && (options_.per_label || label == best))
          all.push_back(detection_of(scored, box, label, options_.labels[static_cast<size_t>(label)]));
      }
    }
    return all;
  }

  static Detections like_example(const OpenDetectionModel::Scores& scored) {
    Detections all;
    for (int64_t box = 0; box < scored.scores.size(0); ++box) all.push_back(detection_of(scored, box, 0, kExample));
    return all;
  }

  // With an example, scores are relative to the best one: it has 1, a tenth of it 0.
  Detections chosen(Detections all) const override {
    if (!by_example_ || all.empty()) return all;
    const float best = all.front().score + 1e-6F;
    for (Detection& each : all) each.score = std::clamp((each.score - best * 0.1F) / (best * 0.9F), 0.0F, 1.0F);
    std::erase_if(all, [&](const Detection& each) { return each.score <= found_above(); });
    return all;
  }

  static Detection detection_of(const OpenDetectionModel::Scores& scored, int64_t box, int64_t query,
                                const std::string& label) {
    Detection detection{label, query, scored.scores.data<float>()[box * scored.scores.size(1) + query], {}};
    std::copy_n(scored.boxes.data<float>() + 4 * box, 4, detection.box.begin());
    return detection;
  }

  // An example for all images is encoded once.
  Tensor example_query(const std::shared_ptr<const std::string>& content) const {
    const std::lock_guard lock(mutex_);
    if (!example_ || *example_ != *content) {
      const image::DecodeOptions decode{.mode = model_.color_mode(), .max_pixels = max_pixels_};
      const image::Image image = image::decode(std::as_bytes(std::span(*content)), decode, "like");
      std::optional<std::array<float, 4>> box;
      if (like_box_) box = checked_box(*like_box_, image);
      example_queries_ = model_.embed_example(*model_.encode(image), box);
      example_ = content;
    }
    return example_queries_;
  }

  static std::array<float, 4> checked_box(const sam::Box& box, const image::Image& image) {
    const auto width = static_cast<double>(image.width), height = static_cast<double>(image.height);
    if (!(box.x0 < box.x1 && box.y0 < box.y1 && box.x0 < width && box.y0 < height && box.x1 > 0 && box.y1 > 0)) {
      throw Error("like-box", str("a box in the example of ", image.width, "×", image.height, " pixels"),
                  str(box.x0, ",", box.y0, ",", box.x1, ",", box.y1));
    }
    return box_of(box);
  }

  const OpenDetectionModel& model_;
  int64_t max_pixels_;
  bool by_example_;
  OpenDetectOptions options_;
  std::optional<sam::Box> like_box_;
  Tensor queries_;  // [labels, D]
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const std::string> example_;  // the content of the one that was encoded last
  mutable Tensor example_queries_;                      // [1, D]
};

}  // namespace

Task open_detect_task() {
  return {.name = "detect",
          .model = "a detector of labels (OWLv2, OWL-ViT)",
          .help = "Find objects that labels name",
          .describe = describe_defaults<OpenDetectOptions, describe_open_detect>,
          .input_files = {{"like", "Models of labels: an image of what to find, instead of labels"}},
          .name_lists = {"labels"},
          .can_render = true,
          .can_track = true,
          .files = detection_file_kinds(),
          .model_options = false,
          .fits = is_model<OpenDetectionModel>,
          .request = [](const LoadedModel& model, RequestOptions& options,
                        const Setting& setting) -> std::unique_ptr<Request> {
            return std::make_unique<OpenDetect>(as_model<OpenDetectionModel>(model), options, setting);
          }};
}

}  // namespace vitrail::tasks
