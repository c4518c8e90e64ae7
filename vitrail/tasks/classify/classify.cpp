// SPDX-License-Identifier: Apache-2.0
// The most probable classes of an image.
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/tasks/images/image_model.h"
#include "vitrail/tasks/table_internal.h"

namespace vitrail::tasks {
namespace {

class Classify : public Request {
 public:
  Classify(const ClassifyingModel& model, RequestOptions& options, const Setting& setting)
      : model_(model), name_(setting.model) {
    options.integer("top", top_, 1, kMaxTop);
  }

  void check(int64_t /*images*/) const override { models::require_classifier(model_.classes(), name_); }
  std::vector<infer::Request> passes() const override { return {{}}; }
  std::vector<Output> outputs() const override { return {{"logits", {model_.classes().vit.num_classes}, true}}; }
  Tensor array(const Item& item, size_t /*output*/) const override { return item.results[0][0]; }

  std::string json(const Item& item) const override {
    const Tensor& logits = item.results[0][0];
    const std::span row(logits.data<float>(), static_cast<size_t>(logits.numel()));
    return pipeline::json_line(pipeline::prediction_json(item.name, models::activation_of(model_.classes()),
                                                         model_.predictions(row, top_, item.name)));
  }

 private:
  const ClassifyingModel& model_;
  std::string name_;
  int64_t top_ = 5;
};

}  // namespace

Task classify_task() {
  return {.name = "classify",
          .model = kClassifiers,
          .fits = is_model<ClassifyingModel>,
          .request = [](const LoadedModel& model, RequestOptions& options,
                        const Setting& setting) -> std::unique_ptr<Request> {
            return std::make_unique<Classify>(as_model<ClassifyingModel>(model), options, setting);
          }};
}

}  // namespace vitrail::tasks
