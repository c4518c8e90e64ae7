// SPDX-License-Identifier: Apache-2.0
// The probability of each label as a text, for a dual model.
#include "vitrail/base/error.h"
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/tasks/images/image_model.h"
#include "vitrail/tasks/table_internal.h"

namespace vitrail::tasks {
namespace {

class ZeroShot : public Request {
 public:
  ZeroShot(const ImageModel& model, RequestOptions& options, const Setting& setting)
      : model_(model), name_(setting.model), labels_(options.texts("labels")), templates_(options.texts("template")) {
    options.integer("top", top_, 1, kMaxTop);
    if (labels_.size() == 1) labels_ = pipeline::split_labels(labels_.front());
    if (templates_.empty()) templates_.emplace_back(DualModel::kDefaultTemplate);
  }

  void check(int64_t /*images*/) const override {
    if (!model_.dual()) throw Error("model", "one with a text tower (CLIP, SigLIP)", name_);
    if (labels_.empty()) throw Error("labels", "names of the classes: \"cat,dog\"", "none");
    check_result_size(std::ssize(labels_), std::ssize(templates_) << 8);
  }

  int64_t texts() const override { return std::ssize(labels_) * std::ssize(templates_); }
  void prepare(const ProgressCallback& progress) override {
    texts_ = model_.dual()->embed_labels(labels_, templates_, progress);
  }
  std::vector<infer::Request> passes() const override { return {model_.images().request_of({})}; }

  std::string json(const Item& item) const override {
    const DualModel& dual = *model_.dual();
    const Tensor logits = dual.logits(item.results[0][0].unsqueeze(0), texts_);
    return pipeline::json_line(
        pipeline::prediction_json(item.name, dual.independent_scores() ? "sigmoid" : "softmax",
                                  pipeline::best_labels(dual.probabilities(logits), labels_, top_)));
  }

 private:
  const ImageModel& model_;
  std::string name_;
  std::vector<std::string> labels_, templates_;
  int64_t top_ = 5;
  Tensor texts_;  // [labels, D]
};

}  // namespace

Task zeroshot_task() { return image_task<ZeroShot>("zeroshot"); }

}  // namespace vitrail::tasks
