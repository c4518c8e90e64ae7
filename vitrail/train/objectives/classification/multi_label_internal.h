// SPDX-License-Identifier: Apache-2.0
#pragma once
// The metrics of classification, and what images with several labels change.
#include "vitrail/train/objectives/scores.h"
#include "vitrail/train/recipe/recipe.h"

namespace vitrail::train {

// Throws one Error that lists the settings that do not go with images of several labels.
void check_multi_label(const Recipe& recipe, int processes);

// Top-1 and top-5 accuracy; with several labels the mean average precision over the classes and the F1 of all decisions
// at 0.5.  Of five classes or fewer, top-5 is always 1 and not in the report.
Metrics classification_metrics(bool multi_label, size_t classes = 6);

}  // namespace vitrail::train
