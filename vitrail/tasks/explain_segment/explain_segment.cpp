// SPDX-License-Identifier: Apache-2.0
// The learning page of Segment Anything, for a prompt.
#include "vitrail/explain/segmentation.h"
#include "vitrail/sam/prompt_text.h"
#include "vitrail/tasks/explain/page_request_internal.h"
#include "vitrail/tasks/segment/segment_model.h"
#include "vitrail/tasks/table_internal.h"

namespace vitrail::tasks {
namespace {

struct Options {
  explain::ExplainOptions page = {};
  std::vector<std::string> points = {};
  std::string box = {};
};

void describe(Fields& fields, Options& options) {
  fields.texts({"point", "X,Y or X,Y,LABEL in pixels; LABEL 0: outside the object; repeatable (default: the middle)"},
               options.points);
  fields.text({"box", "X0,Y0,X1,Y1 in pixels: a box around the object"}, options.box);
  explain::describe_page(fields, options.page);
}

class ExplainSegment : public PageRequest {
 public:
  ExplainSegment(const SegmentModel& model, RequestOptions& options, const Setting& setting)
      : model_(model), name_(setting.model) {
    describe(options, options_);
    for (const std::string& point : options_.points) prompt_.points.push_back(sam::parse_point(point, "point"));
    if (!options_.box.empty()) prompt_.box = sam::parse_box(options_.box, "box");
  }

 private:
  explain::LearningPage page(const Item& item, const ProgressCallback& /*progress*/) const override {
    return explain::explain_segmentation(model_.with_weights(),
                                         {.photo = item.photo, .name = item.name, .model = name_, .prompt = prompt_},
                                         options_.page);
  }

  const SegmentModel& model_;
  std::string name_;
  Options options_;
  sam::Prompt prompt_;
};

bool can_be_explained(const LoadedModel& model) {
  const auto* const segmenter = dynamic_cast<const SegmentModel*>(&model);
  return segmenter && segmenter->predictor().has_decoder() && !segmenter->predictor().second_generation();
}

}  // namespace

Task explain_segment_task() {
  return page_task({.name = "explain",
                    .model = kSegmenters,
                    .describe = describe_defaults<Options, describe>,
                    .fits = can_be_explained,
                    .request = [](const LoadedModel& model, RequestOptions& options,
                                  const Setting& setting) -> std::unique_ptr<Request> {
                      return std::make_unique<ExplainSegment>(as_model<SegmentModel>(model), options, setting);
                    }});
}

}  // namespace vitrail::tasks
