// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/objective.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/data/datasets/pair_set.h"
#include "vitrail/train/objectives/classification/classification_internal.h"
#include "vitrail/train/objectives/contrastive/contrastive_internal.h"
#include "vitrail/train/objectives/detection/detection_internal.h"
#include "vitrail/train/objectives/detection/detection_recipe_internal.h"
#include "vitrail/train/objectives/pretrain/pretrain_internal.h"
#include "vitrail/train/objectives/probe/probe_internal.h"
#include "vitrail/train/objectives/segmentation/segment_recipe_internal.h"
#include "vitrail/train/objectives/segmentation/segmentation_internal.h"
#include "vitrail/train/objectives/semantic/semantic_internal.h"
#include "vitrail/train/objectives/semantic/semantic_recipe_internal.h"
#include "vitrail/train/report/html_internal.h"
#include "vitrail/train/run/run_folder_internal.h"

namespace vitrail::train {
namespace {

template <class Made>
std::unique_ptr<Objective> make(const ObjectiveContext& context) {
  return std::make_unique<Made>(context);
}

std::vector<ObjectiveRow>& objectives() {
  static std::vector<ObjectiveRow> rows{
      {.name = "classify", .make = make<Classification>, .check = check_classifier_recipe, .new_layers = {"head*"}},
      {.name = "probe", .make = make<Probe>, .check = check_probe_recipe, .several_processes = false, .solves = true},
      {.name = "segment",
       .make = make<Segmentation>,
       .describe = describe_segment_recipe,
       .check = check_segment_recipe,
       .splits = segment_splits,
       .several_processes = false},
      {.name = "semantic",
       .make = make<Semantic>,
       .describe = describe_semantic_recipe,
       .check = check_semantic_recipe,
       .splits = semantic_splits,
       .several_processes = false},
      {.name = "detect",
       .make = make<Detection>,
       .describe = describe_detection_recipe,
       .check = check_detection_recipe,
       .splits = object_splits,
       .several_processes = false},
      {.name = "pretrain",
       .make = make<Pretrain>,
       .describe = describe_pretrain_recipe,
       .check = check_pretrain_recipe,
       .new_layers = {"pretrain.*"}},
      {.name = "contrastive",
       .make = make<Contrastive>,
       .describe = describe_contrastive_recipe,
       .check = check_contrastive_recipe,
       .refuse_risks = refuse_contrastive_risks,
       .splits = [](const std::filesystem::path& pairs) { return data::pair_set_splits(pairs); }},
  };
  return rows;
}

}  // namespace

const ObjectiveRow* find_objective(const std::string& name) {
  const auto row = std::ranges::find(objectives(), name, &ObjectiveRow::name);
  return row == objectives().end() ? nullptr : &*row;
}

const ObjectiveRow& objective_of(const Recipe& recipe) {
  if (const ObjectiveRow* row = find_objective(recipe.objective)) return *row;
  throw Error("objective", "a name of the table", "\"" + recipe.objective + "\"");
}

std::vector<std::string> objective_names() {
  std::vector<std::string> names;
  for (const ObjectiveRow& row : objectives()) names.push_back(row.name);
  return names;
}

void add_objective(ObjectiveRow row) {
  if (find_objective(row.name)) throw Error("objective", "a name of its own", "'" + row.name + "'");
  objectives().push_back(std::move(row));
}

void add_start(const Evaluation& start, const Measurement& measurement, Split split, Report& report) {
  for (size_t i = 0; i < start.scores.size(); ++i) {
    const Score& score = start.scores[i];
    const std::string before = percent(score.value, 2);
    if (split == Split::validation && i < measurement.scores.size())
      report.facts.emplace_back(score.title + ", before → after training",
                                before + " → " + percent(measurement.scores[i].value, 2));
    else
      report.facts.emplace_back(score.title + " before training", before);
    report.summary["start_" + score.name] = score.value;
  }
}

Quality Objective::quality(const Evaluation& evaluation) const {
  return {evaluation.scores.front().value, evaluation.loss};
}

std::string Objective::model_card(const ReportInput& input) const {
  std::string results;
  for (const auto& [name, value] : score_facts(input)) results += str("- ", name, ": ", value, "\n");
  return str("---\nlibrary_name: vitrail\n---\n# ", input.subject, "\n\nTrained on ", input.images.training,
             " images of `", input.recipe->data.train, "`.\n\n## Results\n\n",
             results.empty() ? "No images were held out.\n" : results);
}

}  // namespace vitrail::train
