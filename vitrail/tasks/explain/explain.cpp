// SPDX-License-Identifier: Apache-2.0
// The learning page of a Vision Transformer.
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/tasks/explain/page_request_internal.h"
#include "vitrail/tasks/images/image_model.h"
#include "vitrail/tasks/option_model.h"
#include "vitrail/tasks/table_internal.h"

namespace vitrail::tasks {
namespace {

class Explain : public PageRequest {
 public:
  Explain(const ImageModel& model, RequestOptions& options, const Setting& setting)
      : model_(model), name_(setting.model) {
    explain::describe_explain(options, options_);
    if (options_.labels.size() == 1) options_.labels = pipeline::split_labels(options_.labels.front());
    if (!options_.compare.empty())
      compared_ = option_model<ImageModel>(setting, "compare", options_.compare, "a Vision Transformer");
  }

  void check(int64_t /*images*/) const override { explain::check_explain(model_.images(), options_); }
  int64_t texts() const override { return model_.dual() ? std::ssize(options_.labels) : 0; }
  void prepare(const ProgressCallback& progress) override {
    if (texts() > 0) embeddings_ = model_.dual()->embed_labels(options_.labels, {}, progress);
  }

 private:
  explain::LearningPage page(const Item& item, const ProgressCallback& progress) const override {
    explain::ExplainedImage image{
        .photo = item.photo, .name = item.name, .model = name_, .texts = {}, .compared = compared()};
    if (texts() > 0) image.texts = explain::compare_texts(*model_.dual(), item.photo, options_.labels, embeddings_);
    return explain::explain(model_.images(), model_.differentiable().opened(), image, options_, progress);
  }

  std::optional<explain::ComparedModel> compared() const {
    if (!compared_) return std::nullopt;
    return explain::ComparedModel{compared_->images(), compared_->differentiable().opened(), options_.compare};
  }

  const ImageModel& model_;
  std::string name_;
  explain::ExplainOptions options_;
  Tensor embeddings_;  // [labels, D]
  std::shared_ptr<const ImageModel> compared_;
};

}  // namespace

Task explain_task() {
  Task task = page_task(image_task<Explain>("explain"));
  task.describe = describe_defaults<explain::ExplainOptions, explain::describe_explain>;
  task.name_lists = {"labels"};
  return task;
}

}  // namespace vitrail::tasks
