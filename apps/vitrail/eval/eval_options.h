// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options of `vitrail eval`.
#include <string>

#include "apps/vitrail/commands/zero_shot_options.h"
#include "apps/vitrail/input/image_stream.h"
#include "apps/vitrail/input/labelled_sets.h"
#include "apps/vitrail/shell/common.h"
#include "vitrail/data/datasets/label_map_set.h"

namespace vitrail::app {

struct NamedModel;

struct EvalCommandOptions {
  ModelOptions model;
  ZeroShotOptions texts;
  std::vector<std::string> classes;
  std::string dataset, split, logits, labels, predictions, report, detections, detector, format = "table";
  StreamOptions images{};
  bool zeroshot = false, force = false;
  LabelledSets sets{};
  data::LabelMapReading label_maps{};
};

// Throw CLI::ValidationError for options of classifiers, but --split, given to a model that does something else
// ("finds anomalies"); for --split; and for those of label maps.
void refuse_classifier_options(const EvalCommandOptions& options, const std::string& what_it_does);
void refuse_split(const EvalCommandOptions& options, const std::string& what_it_does);
void refuse_label_map_options(const EvalCommandOptions& options,
                              const char* why = "belongs to a model that gives each pixel a class");

int evaluate_image_model(const NamedModel& model, const EvalCommandOptions& options, const GlobalOptions& global);

}  // namespace vitrail::app
