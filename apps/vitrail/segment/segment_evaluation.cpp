// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/segment/segment_family.h"

#include <fmt/core.h>

#include <chrono>

#include "apps/vitrail/families/model_options.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/output/progress.h"
#include "apps/vitrail/segment/segment_options.h"
#include "apps/vitrail/shell/usage_errors.h"
#include "vitrail/sam/mask_evaluation.h"
#include "vitrail/train/recipe/recipe_inputs.h"

namespace vitrail::app {
namespace {

void print_result(const sam::MaskEvaluation& result, double seconds, bool json) {
  if (json) {
    nlohmann::ordered_json object{{"images", result.images},
                                  {"masks", result.masks},
                                  {"click_iou", result.click_best},
                                  {"click_preferred_iou", result.click},
                                  {"three_clicks_iou", result.three_clicks},
                                  {"box_iou", result.box},
                                  {"seconds", seconds}};
    if (result.unreadable > 0) object["unreadable"] = result.unreadable;
    return print_json(object);
  }
  print_output("images              {}\n", result.images);
  print_output("masks               {}\n", result.masks);
  print_output("mean IoU for\n");
  print_output("  one click, best   {:.4f}\n", result.click_best);
  print_output("  one click, chosen {:.4f}\n", result.click);
  print_output("  three clicks      {:.4f}\n", result.three_clicks);
  print_output("  a box             {:.4f}\n", result.box);
}

}  // namespace

// Prints the mean IoU for a click, three clicks and a box.  Unreadable images are errors on the way, and are counted.
int evaluate_segmentation(const NamedModel& model, const EvalCommandOptions& options, const GlobalOptions& global) {
  refuse_classifier_options(options, "segments objects");
  refuse_label_map_options(options);
  refuse_model_options(options.model, "Segment Anything");
  const auto start = std::chrono::steady_clock::now();
  const auto dataset = sam::open_instances(train::find_dataset(options.dataset), options.split);
  const sam::Predictor predictor(*model.files, {.threads = global.threads, .precision = precision_of(global)});
  if (!global.quiet) print_note("vitrail: evaluating " + sam::summary(*dataset, options.dataset));
  Progress progress("images", static_cast<size_t>(dataset->size()), global.quiet);
  const sam::MaskEvaluation result =
      sam::evaluate_masks(predictor, *dataset,
                          {.exif = options.images.exif,
                           .unreadable = [](const std::string& message) { print_error(message); },
                           .progress = [&](int64_t, int64_t) { progress.step(); }});
  print_result(result, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
               options.format == "json");
  return result.unreadable == 0 ? 0 : 1;
}

}  // namespace vitrail::app
