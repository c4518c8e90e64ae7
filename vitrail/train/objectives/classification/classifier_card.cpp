// SPDX-License-Identifier: Apache-2.0
// The model card of a trained model, in the form of the Hugging Face hub.
#include <algorithm>
#include <cmath>
#include <span>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
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

std::string results_of(const ReportInput& input, const std::string& more) {
  const Counters& counters = *input.counters;
  std::string text;
  if (counters.best.score >= 0 && input.images.validation > 0) {
    const Score best{input.metrics->each.front(), counters.best.score,
                     validated_images(counters, input.images.validation)};
    text += "- Held-out images: " + text_of(best);
    if (counters.best_epoch > 0) text += str(", epoch ", counters.best_epoch, ". These images chose the weights");
    text += ".\n";
    if (counters.retrained)
      text += str("- These weights are ",
                  counters.retrained->epochs > 0
                      ? str("of a second training for ", counted(counters.retrained->epochs, "epoch"), " on")
                      : "the start, computed again from",
                  " all ", counters.retrained->images, " images, the held-out ones included.\n");
  }
  text += more;
  if (counters.tested && input.images.test > 0)
    text += "- Test images: " + text_of(tested(counters, input.images.test).scores.front()) + ".\n";
  for (const auto& [name, value] : input.environment) {
    if (name == kCrossValidation) text += "- " + value + ".\n";
  }
  return text.empty() ? "No images were held out, so the accuracy on new images is unknown.\n" : text;
}

}  // namespace

TrainingTexts training_texts(const Recipe& recipe, int64_t epochs) {
  const std::string& init = recipe.model.init;
  return {.origin = init.empty() ? "Trained from scratch" : "Fine-tuned from `" + init + "`",
          .training = str(counted(epochs, "epoch"), " of `", recipe.data.train, "`")};
}

std::string classifier_card(const ReportInput& input, const std::vector<std::string>& classes,
                            const TrainingTexts& texts) {
  const std::string& init = input.recipe->model.init;
  return str(
      "---\nlibrary_name: vitrail\npipeline_tag: image-classification\n",
      "tags: [vision-transformer, image-classification]\n", init.empty() ? "" : "base_model: " + quoted(init) + "\n",
      "---\n# ", input.subject, "\n\n", texts.origin, " on ", input.images.training, " images of ", classes.size(),
      " classes: ", class_list(classes), ".\n\n",
      "```sh\nvitrail classify -m FOLDER IMAGE    # FOLDER: the folder of this file\n```\n\n## Results\n\n",
      results_of(input, texts.results), "\n## Training\n\n", texts.training, " in ",
      std::llround(input.counters->seconds),
      " s. The run's `recipe.json` has all settings, `report.html` the curves, metrics by class and mistakes.\n");
}

}  // namespace vitrail::train
