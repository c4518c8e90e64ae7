// SPDX-License-Identifier: Apache-2.0
// The learning page of an image: a file of HTML, and its facts as JSON.
#include "vitrail/explain/explain.h"

#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/tasks/images/image_model.h"
#include "vitrail/tasks/table_internal.h"

namespace vitrail::tasks {
namespace {

class Explain : public Request {
 public:
  Explain(const ImageModel& model, RequestOptions& options, const Setting& setting)
      : model_(model), name_(setting.model) {
    explain::describe_explain(options, options_);
    if (options_.labels.size() == 1) options_.labels = pipeline::split_labels(options_.labels.front());
  }

  void check(int64_t /*images*/) const override { explain::check_explain(model_.images(), options_); }
  int64_t texts() const override { return model_.dual() ? std::ssize(options_.labels) : 0; }
  void prepare(const ProgressCallback& progress) override {
    if (texts() > 0) embeddings_ = model_.dual()->embed_labels(options_.labels, {}, progress);
  }
  bool keeps_photo() const override { return true; }
  bool is_long() const override { return true; }
  void compute(Item& item, const ImageEncoding* /*encoding*/, const ProgressCallback& progress) const override {
    explain::ExplainedImage image{.photo = item.photo, .name = item.name, .model = name_};
    if (texts() > 0) image.texts = explain::compare_texts(*model_.dual(), item.photo, options_.labels, embeddings_);
    item.value = explain::explain(model_.images(), model_.differentiable().opened(), image, options_, progress);
  }

  std::string json(const Item& item) const override {
    const explain::LearningPage& page = page_of(item);
    nlohmann::ordered_json left_out = nlohmann::ordered_json::array();
    for (const auto& [what, kept] : page.left_out) left_out.push_back({{"what", what}, {"kept", kept}});
    return pipeline::json_line({{"path", item.name},
                                {"bytes", page.html.size()},
                                {"left_out", left_out},
                                {"claims", nlohmann::ordered_json::parse(page.claims)}});
  }

  std::vector<uint8_t> file(const Item& item, const std::string& /*kind*/) const override {
    const std::string& html = page_of(item).html;
    return {html.begin(), html.end()};
  }

 private:
  static const explain::LearningPage& page_of(const Item& item) {
    return std::any_cast<const explain::LearningPage&>(item.value);
  }

  const ImageModel& model_;
  std::string name_;
  explain::ExplainOptions options_;
  Tensor embeddings_;  // [labels, D]
};

}  // namespace

Task explain_task() {
  Task task = image_task<Explain>("explain");
  task.describe = describe_defaults<explain::ExplainOptions, explain::describe_explain>;
  task.name_lists = {"labels"};
  task.files = {{.name = "html",
                 .help = "Folder for NAME.html, the page that explains the forward pass",
                 .start = "<!doctype html>",
                 .media_type = "text/html; charset=utf-8"}};
  return task;
}

}  // namespace vitrail::tasks
