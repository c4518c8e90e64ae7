// SPDX-License-Identifier: Apache-2.0
#pragma once
// The loaders of a run.
#include "vitrail/data/loader.h"
#include "vitrail/train/process_group_internal.h"
#include "vitrail/train/run_data.h"

namespace vitrail::train {

// Each process of the crew gets its share of every batch.  `channels`: of the model's images.  `threads`: that compute.
data::LoaderOptions training_options(const Recipe& recipe, const RunData& data, const image::EvalTransform& transform,
                                     int64_t channels, int threads, const ProcessGroup& crew);

// A part's images in order and unaltered, otherwise as in training.
data::Loader evaluation_loader(const Part& part, const data::LoaderOptions& training);

}  // namespace vitrail::train
