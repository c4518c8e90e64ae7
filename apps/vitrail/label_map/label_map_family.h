// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "apps/vitrail/families/family.h"

namespace vitrail::app {

// On a data::LabelMapSet or a data::PanopticSet, for every model whose result is a label map.
int evaluate_label_maps(const NamedModel& model, const EvalCommandOptions& options, const GlobalOptions& global);

}  // namespace vitrail::app
