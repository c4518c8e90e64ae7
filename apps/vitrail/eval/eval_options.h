// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options of `vitrail eval`.
#include <string>

#include "apps/vitrail/commands/zero_shot_options.h"
#include "apps/vitrail/input/image_stream.h"
#include "apps/vitrail/input/labelled_sets.h"
#include "apps/vitrail/shell/common.h"

namespace vitrail::app {

struct NamedModel;

struct EvalCommandOptions {
  ModelOptions model;
  ZeroShotOptions texts;
  std::string dataset, split, logits, labels, predictions, report, format = "table";
  StreamOptions images{};
  bool zeroshot = false, force = false;
  LabelledSets sets{};
};

int evaluate_image_model(const NamedModel& model, const EvalCommandOptions& options, const GlobalOptions& global);

}  // namespace vitrail::app
