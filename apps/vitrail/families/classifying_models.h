// SPDX-License-Identifier: Apache-2.0
#pragma once
// Models beside the Vision Transformer that `vitrail classify` and `vitrail embed` run.
#include <memory>

#include "apps/vitrail/input/image_stream.h"
#include "apps/vitrail/shell/common.h"
#include "vitrail/tasks/images/classifying_model.h"

namespace vitrail::app {

// Whether a model is one, or has no files: errors then are those of a Vision Transformer.
bool is_vision_transformer(const ModelOptions& options);

// Throws Error for a model that does not classify, and for options of architecture, preprocessing and labels.
std::shared_ptr<const tasks::ClassifyingModel> open_classifying_model(const ModelOptions& options,
                                                                      const GlobalOptions& global,
                                                                      const std::string& labels = "");

// One pass of such a model over images.  The model outlives it.
ImageRun passes_of(const tasks::ClassifyingModel& model, const infer::Request& request);

}  // namespace vitrail::app
