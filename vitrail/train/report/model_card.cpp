// SPDX-License-Identifier: Apache-2.0
// The model card of a trained model, in the form of the Hugging Face hub.
#include <algorithm>
#include <cmath>
#include <span>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/data/metrics/metrics.h"
#include "vitrail/train/objectives/classification/classifier_report_internal.h"
#include "vitrail/train/run/run_folder_internal.h"

namespace vitrail::train {
namespace {

constexpr size_t kMaxListedClasses = 50;

// A string in double quotes, as YAML and JSON have it.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return result + "\"";
}

std::string class_list(const std::vector<std::string>& classes) {
  const std::string list = join(std::span(classes).first(std::min(classes.size(), kMaxListedClasses)));
  return classes.size() > kMaxListedClasses ? list + ", …" : list;
}

std::string results_of(const ReportInput& input) {
  const Counters& counters = *input.counters;
  std::string text;
  if (counters.best.score >= 0 && input.images.validation > 0) {
    const Score best{input.metrics->each.front(), counters.best.score,
                     validated_images(counters, input.images.validation)};
    text += "- Held-out images: " + text_of(best);
    text += input.search ? ".\n" : str(", epoch ", counters.best_epoch, ". These images chose the weights.\n");
  }
  if (input.search && input.search->folds > 0) {
    text += str("- ", input.search->folds, "-fold cross-validation, which chose the L2 penalty: top-1 ",
                data::accuracy_text(input.search->held_out_fit().top1, input.search->samples), ".\n");
  }
  if (counters.tested && input.images.test > 0)
    text += "- Test images: " + text_of(tested(counters, input.images.test).scores.front()) + ".\n";
  for (const auto& [name, value] : input.environment) {
    if (name == kCrossValidation) text += "- " + value + ".\n";
  }
  return text.empty() ? "No images were held out, so the accuracy on new images is unknown.\n" : text;
}

// "Fine-tuned from `init`"
std::string origin_of(const ReportInput& input) {
  const std::string& init = input.recipe->model.init;
  if (init.empty()) return "Trained from scratch";
  return (input.search ? "A linear probe of `" : "Fine-tuned from `") + init + "`";
}

// "12 epochs of `photos`"
std::string training_of(const ReportInput& input) {
  if (input.search)
    return str("Logistic regression on features of `", input.recipe->data.train, "`, with C ", input.search->best,
               " (the inverse strength of the L2 penalty)");
  const size_t epochs = input.counters->history.size();
  return str(epochs, epochs == 1 ? " epoch of `" : " epochs of `", input.recipe->data.train, "`");
}

}  // namespace

std::string classifier_card(const ReportInput& input, const std::vector<std::string>& classes) {
  const std::string& init = input.recipe->model.init;
  return str(
      "---\nlibrary_name: vitrail\npipeline_tag: image-classification\n",
      "tags: [vision-transformer, image-classification]\n", init.empty() ? "" : "base_model: " + quoted(init) + "\n",
      "---\n# ", input.subject, "\n\n", origin_of(input), " on ", input.images.training, " images of ", classes.size(),
      " classes: ", class_list(classes), ".\n\n",
      "```sh\nvitrail classify -m FOLDER IMAGE    # FOLDER: the folder of this file\n```\n\n## Results\n\n",
      results_of(input), "\n## Training\n\n", training_of(input), " in ", std::llround(input.counters->seconds),
      " s. The run's `recipe.json` has all settings, `report.html` the curves, metrics by class and mistakes.\n");
}

}  // namespace vitrail::train
