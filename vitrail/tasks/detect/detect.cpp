// SPDX-License-Identifier: Apache-2.0
// The objects of an image, as JSON, arrays and boxes over the image.
#include <algorithm>
#include <charconv>
#include <set>

#include "vitrail/base/near_names_internal.h"
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

// The indices that a name has, which several may share, or that a number is.
std::set<int64_t> indices_of(const std::string& text, const std::vector<std::string>& names) {
  std::set<int64_t> indices;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == text) indices.insert(static_cast<int64_t>(i));
  }
  if (!indices.empty()) return indices;
  int64_t index = -1;
  const char* const end = text.data() + text.size();
  if (std::from_chars(text.data(), end, index).ptr != end || index < 0 || index >= std::ssize(names)) {
    throw Error("classes",
                str("a name or an index of the model's ", names.size(), " classes") + did_you_mean(text, names),
                "'" + text + "'");
  }
  return {index};
}

class Detect : public DetectionRequest {
 public:
  Detect(const DetectionModel& model, RequestOptions& options, const Setting& setting)
      : DetectionRequest(model, setting), model_(model) {
    describe_detect(options, options_);
    for (const std::string& text : options_.classes) classes_.merge(indices_of(text, model.class_names()));
  }

 private:
  const DetectionOptions& options() const override { return options_; }
  Detections found(const Item& /*item*/, const ImageEncoding& encoding) const override {
    Detections all = model_.detections(encoding, static_cast<float>(options_.threshold.value_or(kThreshold)));
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
          .model = "an object detector (RF-DETR, LW-DETR, YOLOS)",
          .help = "Find objects",
          .describe = describe_defaults<DetectOptions, describe_detect>,
          .can_render = true,
          .files = detection_file_kinds(),
          .model_options = false,
          .fits = is_model<DetectionModel>,
          .request = [](const LoadedModel& model, RequestOptions& options,
                        const Setting& setting) -> std::unique_ptr<Request> {
            return std::make_unique<Detect>(as_model<DetectionModel>(model), options, setting);
          }};
}

}  // namespace vitrail::tasks
