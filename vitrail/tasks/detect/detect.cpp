// SPDX-License-Identifier: Apache-2.0
// The objects of an image, as JSON, arrays and boxes over the image.
#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "vitrail/base/near_names_internal.h"
#include "vitrail/tasks/detect/detection_model.h"
#include "vitrail/tasks/table_internal.h"

namespace vitrail::tasks {
namespace {

struct DetectOptions {
  double threshold = 0.5;
  std::vector<std::string> classes;
  std::optional<double> nms;
};

void describe_detect(Fields& fields, DetectOptions& options) {
  fields.number({"threshold", "Score above which an object is in the result"}, options.threshold, {0, 1});
  fields.texts({"classes", "Names or indices of the classes to find (default: all)"}, options.classes);
  fields.number(
      {"nms", "Leave out an object whose box has a larger IoU with a better one of its class (default: all stay)"},
      options.nms, {0, 1});
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

class Detect : public Request {
 public:
  Detect(const DetectionModel& model, RequestOptions& options, const Setting& setting)
      : model_(model), render_(setting.render) {
    describe_detect(options, options_);
    for (const std::string& text : options_.classes) classes_.merge(indices_of(text, model.class_names()));
  }

  bool keeps_photo() const override { return render_; }

  void compute(Item& item, const ImageEncoding* encoding, const ProgressCallback& /*progress*/) const override {
    Detections found = model_.detections(*encoding, static_cast<float>(options_.threshold));
    if (!classes_.empty()) std::erase_if(found, [&](const Detection& each) { return !classes_.contains(each.index); });
    if (options_.nms) suppress(found, *options_.nms);
    model_.add_masks(*encoding, found);
    item.value = std::move(found);
  }

  std::string json(const Item& item) const override { return detections_json(item.name, of(item)); }
  std::vector<Output> outputs() const override { return {{"detections", {}}}; }
  Tensor array(const Item& item, size_t /*output*/) const override { return detections_array(of(item)); }
  image::Image render(const Item& item) const override { return detections_overlay(item.photo, of(item)); }

 private:
  static const Detections& of(const Item& item) { return std::any_cast<const Detections&>(item.value); }

  const DetectionModel& model_;
  bool render_;
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
          .model_options = false,
          .fits = is_model<DetectionModel>,
          .request = [](const LoadedModel& model, RequestOptions& options,
                        const Setting& setting) -> std::unique_ptr<Request> {
            return std::make_unique<Detect>(as_model<DetectionModel>(model), options, setting);
          }};
}

}  // namespace vitrail::tasks
