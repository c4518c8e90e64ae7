// SPDX-License-Identifier: Apache-2.0
// The section of the report and the model card of a run with the objective "pretrain".
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/train/objectives/pretrain/pretrain_internal.h"
#include "vitrail/train/report/html_internal.h"
#include "vitrail/train/report/report_internal.h"
#include "vitrail/train/run/run_folder_internal.h"

namespace vitrail::train {

void Pretrain::add_section(const Measurement&, Split, Report& report) {
  if (!start_) return;
  for (const Score& score : start_->scores) {
    report.facts.emplace_back(score.title + " before training", percent(score.value, 2));
    report.summary["start_" + score.name] = score.value;
  }
}

std::string Pretrain::model_card(const ReportInput& input) const {
  const std::string& init = input.recipe->model.init;
  std::string results;
  for (const auto& [name, value] : score_facts(input)) results += str("- ", name, ": ", value, "\n");
  return str("---\nlibrary_name: vitrail\npipeline_tag: image-feature-extraction\n---\n# ", input.subject, "\n\n",
             init.empty() ? "Trained from scratch" : "Trained further from `" + init + "`", " on ",
             input.images.training, " images of `", input.recipe->data.train, "` without labels, by the method ",
             pretrain_of(*input.recipe).method, ". The model has no head.\n\n```sh\n",
             "vitrail embed -m FOLDER IMAGES    # FOLDER: the folder of this file\n",
             "vitrail train LABELLED -m FOLDER -o RUN\n```\n\n## Results\n\n",
             results.empty() ? "No images were held out.\n" : results,
             "\nThe run's `recipe.json` has all settings, `report.html` the curves.\n");
}

}  // namespace vitrail::train
