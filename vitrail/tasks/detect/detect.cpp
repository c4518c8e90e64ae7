// SPDX-License-Identifier: Apache-2.0
// The objects of an image, as JSON, arrays and boxes over the image.
#include <algorithm>
#include <set>

#include "vitrail/tasks/detect/detection_files.h"
#include "vitrail/tasks/detect/detection_model.h"
#include "vitrail/tasks/detect/detection_request.h"
#include "vitrail/tasks/table_internal.h"

namespace vitrail::tasks {
namespace {

struct DetectOptions : DetectionOptions {
  std::vector<std::string> classes;
};

void describe_detect(Fields& fields, DetectOptions& options) {
  fields.texts({"classes", "Names or indices of the classes to find (default: all)"}, options.classes);
  describe_detection(fields, options);
}

class Detect : public DetectionRequest {
 public:
  Detect(const DetectionModel& model, RequestOptions& options, const Setting& setting)
      : DetectionRequest(model, setting, kThreshold), model_(model) {
    describe_detect(options, options_);
    classes_ = class_indices(options_.classes, model.class_names());
    open_segmenter(setting);
  }

 private:
  const DetectionOptions& options() const override { return options_; }
  Detections found(const Item& /*item*/, const ImageEncoding& encoding) const override {
    Detections all = model_.detections(encoding, found_above());
    if (!classes_.empty()) std::erase_if(all, [&](const Detection& each) { return !classes_.contains(each.index); });
    return all;
  }
  void add_masks(const ImageEncoding& encoding, Detections& all) const override { model_.add_masks(encoding, all); }

  static constexpr double kThreshold = 0.5;

  const DetectionModel& model_;
  DetectOptions options_;
  std::set<int64_t> classes_;  // empty: all
};

}  // namespace

Task detect_task() {
  return {.name = "detect",
          .model = kDetectors,
          .help = "Find objects",
          .describe = describe_defaults<DetectOptions, describe_detect>,
          .can_render = true,
          .can_track = true,
          .files = detection_file_kinds(),
          .model_options = false,
          .fits = is_model<DetectionModel>,
          .request = [](const LoadedModel& model, RequestOptions& options,
                        const Setting& setting) -> std::unique_ptr<Request> {
            return std::make_unique<Detect>(as_model<DetectionModel>(model), options, setting);
          }};
}

}  // namespace vitrail::tasks
